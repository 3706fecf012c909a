"""Prints events for people: one line each, aligned, coloured by operation, for an update only what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from tailrace.model.text import json_reader as json_text
from tailrace.sinks.counts import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

STYLES = {"c": "green", "r": "cyan", "u": "yellow", "d": "red", "t": "magenta"}
WORDS = {"c": "create", "r": "read", "u": "update", "d": "delete", "t": "truncate"}


Columns = Mapping[str, Any]


@dataclass(frozen=True)
class ConsoleEvent:
    """A change for reading; empty where there is no key or image."""

    ts: datetime | None
    op: str
    topic: str
    key: Columns
    before: Columns
    after: Columns


@dataclass
class ConsoleSink:
    """The terminal, or whatever `console` prints to. The driver prints, row by row as they come from the executors."""

    console: Console = field(default_factory=Console)
    written: Counts = field(default_factory=Counts)
    shape = "event"
    _width: int = 0

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that prints each micro-batch of `frame`."""
        return frame.writeStream.foreachBatch(self._print)

    def _print(self, frame: DataFrame, batch_id: int) -> None:
        columns = frame.select("ts", "op", "topic", "key", "before", "after")
        count = 0
        for row in columns.toLocalIterator():
            self._width = min(max(self._width, len(row["topic"])), 48)
            event = ConsoleEvent(
                row["ts"], row["op"], row["topic"], *map(_object, (row["key"], row["before"], row["after"]))
            )
            self.console.print(line(event, self._width), no_wrap=True, overflow="ellipsis", crop=True)
            count += 1
        self.written[batch_id] = count


def line(event: ConsoleEvent, width: int = 0) -> Text:
    """An event as one line of text. `width` is that of the topic's column."""
    ts = event.ts
    text = Text().append(f"{ts:%H:%M:%S}.{ts.microsecond // 1000:03d} " if ts else " " * 13, style="dim")
    text.append(f"{WORDS.get(event.op, event.op):<8} ", style=STYLES.get(event.op, ""))
    text.append(f"{event.topic:<{width}}  ", style="bold")
    text.append(_pairs(event.key), style="cyan")
    details = _details(event.before, event.after, event.key)
    return text.append(f"  {details}" if details else "")


def _details(before: Columns, after: Columns, key: Columns) -> str:
    """The changed columns of an update with an old image, otherwise the new row's; the key is printed separately."""
    if before and after:
        changed = [name for name in after if before.get(name) != after[name]]
        return ", ".join(f"{name}: {_value(before.get(name))} → {_value(after[name])}" for name in changed)
    return _pairs({name: value for name, value in after.items() if name not in key})


def _pairs(columns: Columns) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in columns.items())


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _object(text: str | None) -> Columns:
    columns: Columns = json_text.read(text) if text else {}
    return columns
