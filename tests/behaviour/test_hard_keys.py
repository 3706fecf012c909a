"""Keys that are unique at commit alone, and keys that are equal and not identical: the replica is the table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import SinkError
from tailrace.sinks.replica.target import read_table
from tests.behaviour.following import Following, following
from tests.conftest import Database

DEFERRED = (
    "CREATE TABLE d (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text)",
    "INSERT INTO d SELECT n, 'v' || n FROM generate_series(1, 30) n",
    "CREATE TABLE e (v text, n int NOT NULL UNIQUE DEFERRABLE INITIALLY IMMEDIATE)",
    "INSERT INTO e VALUES ('a', 1), ('b', 2)",
    "CREATE TABLE l (list int, place int, v text, PRIMARY KEY (list, place) DEFERRABLE)",
    "INSERT INTO l SELECT 1, n, 'v' || n FROM generate_series(1, 9) n",
    "CREATE TABLE m (id int PRIMARY KEY, slug text NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO m SELECT n, 's' || n FROM generate_series(1, 5) n",
    *(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in "delm"),
)
EXCHANGES = (
    # Two rows exchange their keys, and so do three; each change alone breaks the constraint.
    "UPDATE d SET id = 2 WHERE v = 'v1'; UPDATE d SET id = 1 WHERE v = 'v2'",
    "UPDATE d SET id = CASE id WHEN 3 THEN 4 WHEN 4 THEN 5 ELSE 3 END WHERE id IN (3, 4, 5)",
    "UPDATE d SET id = id + 1 WHERE id >= 10",
    "UPDATE d SET id = id - 1 WHERE id > 10",
    "INSERT INTO d VALUES (7, 'new'); DELETE FROM d WHERE v = 'v7'",
    "INSERT INTO d VALUES (8, 'v8'); DELETE FROM d WHERE ctid = (SELECT min(ctid) FROM d WHERE id = 8)",
    "INSERT INTO d VALUES (9, 'brief'); DELETE FROM d WHERE v = 'brief'",
    "UPDATE d SET id = 0 WHERE id < 7; UPDATE d SET id = substr(v, 2)::int WHERE id = 0",
    "ALTER TABLE d ADD more int; UPDATE d SET id = 30 - id",
    "UPDATE d SET id = 30 - id, more = id; SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE d DROP more; "
    "SET CONSTRAINTS ALL DEFERRED; UPDATE d SET id = 29 - id",
    "UPDATE e SET n = 3 - n",
    "UPDATE l SET place = 10 - place",
    "UPDATE m SET slug = 's' || (6 - id)",
)


def compared(pipeline: Following, *tables: str) -> None:
    """Wait until tables of the replica print as those of the source."""
    deadline = time.monotonic() + 60
    for table in tables:
        while (held := printed(pipeline, table)) != (there := source(pipeline, table)):
            assert time.monotonic() < deadline, (table, held, there)
            assert pipeline.failure is None, pipeline.failure
            time.sleep(0.2)


def source(pipeline: Following, table: str) -> list[str]:
    rows = asked(pipeline, f"SELECT * FROM {table}")
    return sorted(str(tuple(str(value) for value in row)) for row in rows)


def asked(pipeline: Following, query: str) -> list[tuple[Any, ...]]:
    with pipeline.database.connect() as connection:
        return connection.execute(query.encode()).fetchall()


def printed(pipeline: Following, table: str) -> list[str]:
    columns = [
        name
        for (name,) in asked(
            pipeline,
            f"SELECT attname::text FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 "
            "AND NOT attisdropped ORDER BY attnum",
        )
    ]
    try:
        rows = read_table(str(pipeline.folder / "lake"), f"public.{table}")
    except SinkError:
        return []
    rows = rows.select([name for name in columns if name in rows.column_names])
    return sorted(str(tuple(str(value) for value in row.values())) for row in rows.to_pylist())


@pytest.mark.parametrize("rows", [500_000, 1], ids=["at once", "in parts"])
def test_keys_that_are_unique_at_commit_alone(database: Database, tmp_path: Path, rows: int) -> None:
    database.execute(*DEFERRED)
    with following(database, tmp_path, message__key__columns="public.m:slug") as pipeline:
        pipeline.rows = rows
        compared(pipeline, *"delm")
        with database.connect() as connection:
            for statements in EXCHANGES:
                with connection.transaction():
                    connection.execute("SET CONSTRAINTS ALL DEFERRED")
                    for statement in statements.split("; "):
                        connection.execute(statement.encode())
                compared(pipeline, *"delm")
