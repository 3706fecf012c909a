"""A pipeline of the conformance suite over one table, which is read step by step, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Row, Source, Subject

_names = count()


class Pipeline:
    """A pipeline over a table of its own."""

    def __init__(self, source: Source, table: str, stream: Stepped) -> None:
        self.source, self.table, self._stream = source, table, stream

    def steps(self) -> list[tuple[str, int]]:
        """Operation and key of the table's events of the next steps, until nothing comes any more."""
        found: list[tuple[str, int]] = []
        idle = 0
        while idle < 2:
            before = self._stream.offset
            events, _ = self._stream.step()
            found += [
                (event["op"], row[KEY])
                for event in events
                if self.table in (event["source"].get("table"), event["source"].get("collection"))
                if (row := self.source.image(event["after"]) or self.source.image(event["before"])) is not None
            ]
            idle = idle + 1 if self._stream.offset == before else 0
        return found

    @property
    def incomplete(self) -> list[str]:
        """The tables that lack rows which were asked for."""
        return [table["table"] for table in self._stream.offset["snapshots"].get("incomplete", [])]

    def ask(self, id_: str, text: str = "", kind: str = "incremental") -> None:
        """Ask for the table's rows, or for those that a condition or SELECT names."""
        name = str(self.source.id(self.table))
        data: dict[str, Any] = {"data-collections": [name], "type": kind}
        if text:
            data["additional-conditions"] = [{"data-collection": name, "filter": text}]
        self.source.signal(id_, "execute-snapshot", json.dumps(data))


@contextmanager
def pipeline(subject: Subject, source: Source, signals: str | None = None, **properties: str) -> Iterator[Pipeline]:
    """A pipeline that has begun, with a row in its table; `signals` is another signal table."""
    table = f"told{next(_names)}"
    source.create(table)
    source.commit(Insert(table, row(1)))
    given = {"snapshot__mode": "no_data", "signal__data__collection": str(source.id(signals or source.signals))}
    with stepping(subject.connector, source, **given, **properties) as stream:
        yield Pipeline(source, table, stream)


def row(key: int) -> Row:
    """A row with that KEY."""
    return {KEY: key, VALUE: 0, NOTE: None}
