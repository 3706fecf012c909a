"""Fills a table for each type, and reads it in all ways: by snapshot in text and binary form, and from the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.snapshot import transfer
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database
from tests.types.cases import CASES, MODES, Case
from tests.types.literals import drawn

NEW_TYPES = (
    """CREATE TYPE mood AS ENUM ('sad', 'it''s, ok', 'quo"te\\', 'NULL')""",
    "CREATE DOMAIN amount AS numeric(6,2)",
    "CREATE DOMAIN short AS numeric",
    "CREATE EXTENSION vector",
    "CREATE SCHEMA filled",
)


@dataclass(frozen=True)
class Read:
    """What came of a type's values: what the server said of each, and the values by each road, in one order."""

    said: list[str | None]
    snapshot: list[Any]
    binary: list[Any]
    streamed: list[Any]


def fill(database: Database, count: int) -> None:
    """Make the types, and a table of values for each case; its last value is null."""
    database.execute(*NEW_TYPES)
    with database.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for case in CASES:
            name = f"filled.{case.table}"
            connection.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, c {case.type})".encode())
            with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for row in enumerate([*drawn(case.values, count), None]):
                    copy.write_row(row)


def read(database: Database, mode: str) -> dict[str, Read]:
    """Capture copies of the tables that the mode has models for, first as a snapshot, then again from the log."""
    cases = [case for case in CASES if mode in case.models]
    for case in cases:
        database.execute(f"CREATE TABLE {case.table} (LIKE filled.{case.table} INCLUDING ALL)", _copied(case))
    names = ",".join(rf"public\.{case.table}" for case in cases)
    properties = {name.replace(".", "__"): value for name, value in MODES[mode].items()}
    # The slot remains from one capture to the next, which has no checkpoint to prove that it is its own.
    properties["slot__takeover"] = "true"
    with capturing(database, table__include__list=names, **properties) as capture:
        snapshot = _columns(capture)
        database.execute(*(f"DELETE FROM {case.table}" for case in cases))
        database.execute(*map(_copied, cases))
        streamed = _columns(capture)
    with (
        pytest.MonkeyPatch.context() as patch,
        capturing(database, table__include__list=names, **properties) as capture,
    ):
        patch.setattr(transfer, "BINARY_BYTES", 1)
        binary = _columns(capture)
    said = {case.table: _said(database, case) for case in cases}
    database.execute(*(f"DROP TABLE {case.table}" for case in cases))
    return {
        case.table: Read(said[case.table], *(road[f"public.{case.table}"] for road in (snapshot, binary, streamed)))
        for case in cases
    }


def _copied(case: Case) -> str:
    return f"INSERT INTO {case.table} SELECT * FROM filled.{case.table} ORDER BY id"


def _said(database: Database, case: Case) -> list[str | None]:
    asked = f"SELECT CASE WHEN c IS NULL THEN NULL ELSE {case.asked} END FROM filled.{case.table} ORDER BY id"
    with database.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return [text for (text,) in connection.execute(asked.encode())]


def _columns(capture: Capture) -> dict[str, list[Any]]:
    """The values of column c of all tables, by id."""
    found: dict[str, dict[int, Any]] = {}
    for chunk in _chunks(capture):
        for batch in chunk.batches:
            after = batch.rows.column("after")
            after.validate(full=True)
            rows = zip(after.to_pylist(), batch.rows.column("op").to_pylist(), strict=True)
            values = {row["id"]: row["c"] for row, op in rows if op != "d"}
            found.setdefault(str(batch.table.id), {}).update(values)
    return {table: [values[number] for number in sorted(values)] for table, values in found.items()}


def _chunks(capture: Capture) -> Iterator[Chunk]:
    for split in capture.plan():
        yield from capture.reader.read(split)
