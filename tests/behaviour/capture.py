"""Drives the PostgreSQL connector without Spark: plan, read, go on; what a query does, one step at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from tailrace.capture.capture import Capture as Reader
from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_PORT
from tailrace.connectors.base import Chunk, Offset
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.connector import PostgresConnector
from tests.behaviour import streams_here
from tests.conftest import Database

streams_here.install()


def reader(config: Config) -> Reader:
    """What Spark's readers use."""
    return Reader(PostgresConnector(config))


class Capture:
    """One pipeline over a database and how far it has come."""

    def __init__(self, database: Database, properties: Mapping[str, str]) -> None:
        self.database, name = database, database.name
        prefix = {} if "database.server.name" in properties else {"topic.prefix": "t"}
        given = {**prefix, "slot.name": f"slot_{name}", "publication.name": f"publication_{name}"}
        self.config = resolve({**database.properties, **given, "slot.max.retries": "0", **properties})
        self.reader = reader(self.config)
        self.offset: Offset = self.reader.begin()

    def plan(self, limit: int | None = None) -> list[Any]:
        """The splits of the next step, which counts as committed from here on."""
        end = self.reader.head(self.offset, limit, None)
        splits = self.reader.plan(self.offset, end)
        self.offset = end
        return list(splits)

    def step(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The rows of the next step."""
        return rows(chunk for split in self.plan(limit) for chunk in self.reader.read(split))

    def forget_streams(self) -> None:
        """As if the reader process had ended: the next read makes a new connection. The slot is free then."""
        name = f"tailrace {self.offset['pipeline']}"
        if streams_here.forget(name) and self.config[DATABASE_PORT] == self.database.server.port:
            with suppress(psycopg.Error):  # the server may be away
                _until_noticed(self.database, name)

    def close(self) -> None:
        self.forget_streams()
        self.reader.close()


def _until_noticed(database: Database, application: str) -> None:
    """Wait until the server has noticed that a reader has left: one that is busy still counts the slot as in use."""
    query = "SELECT FROM pg_stat_activity WHERE application_name = %s AND backend_type = 'walsender'"
    deadline = time.monotonic() + 20
    with database.connect() as connection:
        while connection.execute(query, [application]).fetchone() is not None and time.monotonic() < deadline:
            time.sleep(0.005)


@contextmanager
def capturing(database: Database, **properties: str) -> Iterator[Capture]:
    """A pipeline; a property's dots are written as two underscores."""
    capture = Capture(database, {name.replace("__", "."): value for name, value in properties.items()})
    try:
        yield capture
    finally:
        capture.close()


def rows(chunks: Iterable[Chunk]) -> list[dict[str, Any]]:
    """All rows in log order, each with its table and schema, `of` the snapshot it is of; `order` must ascend."""
    found: list[dict[str, Any]] = []
    for chunk in chunks:
        part = [
            {
                **row,
                "table": str(batch.table.id),
                "schema": batch.table,
                "of": None if batch.read is None else batch.read.snapshot,
            }
            for batch in chunk.batches
            for row in batch.rows.to_pylist()
        ]
        found += sorted(part, key=lambda row: row["order"])
    return found


def lasting(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without their place in one read, which a second read may number otherwise."""
    return [{name: value for name, value in row.items() if name != "order"} for row in found]
