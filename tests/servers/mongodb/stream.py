"""The records of a pipeline that reads a replica set step by step, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tailrace.capture.capture import Capture
from tailrace.connectors import registry
from tailrace.connectors.mongodb.record_format import source_block
from tailrace.errors import TailraceError
from tailrace.events.keychange import split_key_changes
from tailrace.events.record import RecordEncoder
from tailrace.events.selection import select
from tests.servers.mongodb.server import ReplicaSet

NAME = "fulfillment"
Record = dict[str, Any]


class Stream:
    """A pipeline, and the records of its steps as a consumer sees them."""

    def __init__(self, url: str, **properties: str) -> None:
        given = {"mongodb.connection.string": url, "topic.prefix": NAME, "database.include.list": "inventory"}
        given |= {name.replace("__", "."): value for name, value in properties.items()}
        self.config = registry.named("mongodb").load().resolve(given)
        self.capture = Capture(registry.named("mongodb").load().connector(self.config))
        try:
            self.offset = self.capture.begin()
        except TailraceError:
            self.capture.close()
            raise

    def records(self) -> list[Record]:
        """The records of the next step."""
        start, self.offset = self.offset, self.capture.head(self.offset, None)
        encoder = RecordEncoder(self.config, source_block(self.config), "run")
        found = []
        for split in self.capture.plan(start, self.offset):
            for chunk in self.capture.read(split):
                batches = [select(split_key_changes(batch, has_zeros=False), self.config) for batch in chunk.batches]
                found += [
                    row for batch in batches if len(batch) for rows in encoder.encode(batch) for row in rows.to_pylist()
                ]
        for record in found:
            for part in ("key", "value"):
                record[part] = None if record[part] is None else json.loads(record[part])
        return found


@contextmanager
def streaming(servers: ReplicaSet, **properties: str) -> Iterator[Stream]:
    """A pipeline that has begun its stream."""
    stream = Stream(servers.url(), **{"snapshot__mode": "no_data", **properties})
    try:
        stream.records()
        yield stream
    finally:
        stream.capture.close()


def payloads_of(records: list[Record]) -> list[Any]:
    """The payloads of values, None for a tombstone."""
    return [record["value"] and record["value"]["payload"] for record in records]


def parsed(text: str | None) -> Any:
    """A document from its JSON text."""
    return None if text is None else json.loads(text)
