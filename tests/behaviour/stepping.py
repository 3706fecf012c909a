"""A pipeline of a source of the conformance suite that is read step by step, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any
from uuid import uuid4

import pytest

from tailrace.capture.capture import Capture
from tailrace.connectors import registry
from tailrace.events.keychange import split_key_changes, with_identity
from tailrace.events.record import RecordEncoder
from tailrace.events.schema_change import SchemaChangeWriter
from tailrace.events.selection import select
from tailrace.model.change import ChangeBatch
from tests.conformance.subject import Source

Record = dict[str, Any]


class Stepped:
    """A pipeline. `records` are those of the last step as a consumer sees them, keys and values parsed."""

    def __init__(self, connector: str, source: Source, properties: dict[str, str]) -> None:
        package = registry.named(connector).load()
        own = source.properties(f"p{uuid4().hex[:8]}")
        self.config = package.resolve({**own, "topic.prefix": "t", **properties})
        self.capture = Capture(package.connector(self.config))
        self.offset = self.capture.begin()
        self.records: list[Record] = []
        self._source, self._block = source, package.source_block(self.config)

    def step(self, limit: int | None = None) -> tuple[list[Record], list[Record]]:
        """The payloads of the next step's events, tombstones left out, and the changes of structure that it tells."""
        self._source.settle()
        start, self.offset = self.offset, self.capture.head(self.offset, limit)
        encoder, writer = RecordEncoder(self.config, self._block, "run"), SchemaChangeWriter(self.config, self._block)
        self.records, structures = [], []
        for split in self.capture.plan(start, self.offset):
            for chunk in self.capture.read(split):
                found: list[tuple[int, Record]] = []
                for batch in chunk.batches:
                    told = writer.record(batch)
                    if batch.schema_change is None:
                        changes = with_identity(batch) if self._block.is_old else batch
                        found += _ordered(select(split_key_changes(changes, has_zeros=False), self.config), encoder)
                    elif told is not None:
                        structures += [json.loads(value) for value in told.rows.column("value").to_pylist()]
                self.records += [record for _, record in sorted(found, key=itemgetter(0))]
        return [each["value"]["payload"] for each in self.records if each["value"]], structures

    def close(self) -> None:
        """Close its connections."""
        self.capture.close()


@contextmanager
def stepping(connector: str, source: Source, **properties: str) -> Iterator[Stepped]:
    """A pipeline whose snapshot is read. A name of a property has two underscores for a dot."""
    stream = Stepped(connector, source, {name.replace("__", "."): value for name, value in properties.items()})
    try:
        stream.step()
        stream.step()
        yield stream
    finally:
        stream.close()


def statements(monkeypatch: pytest.MonkeyPatch, connection: type[Any]) -> list[str]:
    """The statements that connections of a class ask from now on, as they come."""
    asked: list[str] = []
    rows = connection.rows

    def noted(self: Any, statement: str) -> Any:
        asked.append(statement)
        return rows(self, statement)

    monkeypatch.setattr(connection, "rows", noted)
    return asked


def _ordered(batch: ChangeBatch, encoder: RecordEncoder) -> list[tuple[int, Record]]:
    """The records of a batch with their places in the log: a chunk has a batch for each table."""
    return [
        (place, _parsed(record))
        for row, place in enumerate(batch.rows.column("order").to_pylist())
        for rows in encoder.encode(batch.with_rows(batch.rows.slice(row, 1)))
        for record in rows.to_pylist()
    ]


def _parsed(row: Record) -> Record:
    parsed = {part: None if row[part] is None else json.loads(row[part]) for part in ("key", "value")}
    return {**row, **parsed, "headers": {header["key"]: header["value"] for header in row["headers"] or ()}}
