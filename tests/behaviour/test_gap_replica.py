"""snapshot.mode=when_needed with a replica: rows that were deleted in the lost log are removed from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.sinks.replica.target import read_table
from tests.behaviour.streams import eventually, properties
from tests.conftest import Database

TABLES = ("orders", "bag", "emptied", "truncated")


def source(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    with database.connect() as connection:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}".encode()).fetchall()) for name in TABLES}


def replica(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    tables = {name: read_table(str(folder / "lake"), f"public.{name}") for name in TABLES}
    return {name: sorted(tuple(row.values()) for row in table.to_pylist()) for name, table in tables.items()}


def run(database: Database, spark: SparkSession, folder: Path, **more: str) -> None:
    given = properties(database, snapshot__mode="when_needed", **more)
    sink = {"replica": {"path": str(folder / "lake")}}
    content = {"source": {"config": given}, "sink": sink, "checkpoint": "state", "trigger": "availableNow"}
    assert Pipeline(from_content(content, base=folder, where="test"), spark).start().await_(200)


def lose(database: Database) -> None:
    """Drop the slot once the reader's connection has ended, and change rows of each kind meanwhile."""
    name = f"slot_{database.name}"
    with database.connect() as connection:

        def is_free() -> bool:
            query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active"
            return not connection.execute(query, [name]).fetchall()

        eventually(is_free)
    database.execute(f"SELECT pg_drop_replication_slot('{name}')")
    database.execute(
        "DELETE FROM orders WHERE id % 10 = (SELECT min(id) % 10 FROM orders)",
        "UPDATE orders SET note = note || '!' WHERE id % 10 = 5",
        "INSERT INTO orders SELECT max(id) + 1, 'late' FROM orders",
        "DELETE FROM bag WHERE kind = (SELECT min(kind) FROM bag)",
        "DELETE FROM emptied",
        "TRUNCATE truncated",
    )


@pytest.mark.long
def test_rows_that_vanished_in_a_gap_vanish_from_the_replica(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "CREATE TABLE bag (kind int)",
        "ALTER TABLE bag REPLICA IDENTITY FULL",
        "CREATE TABLE emptied (id int PRIMARY KEY)",
        "CREATE TABLE truncated (id int PRIMARY KEY)",
        "INSERT INTO orders SELECT n, 'note' FROM generate_series(1, 500) n",
        "INSERT INTO bag SELECT n % 5 FROM generate_series(1, 100) n",
    )
    fill = [f"INSERT INTO {name} SELECT generate_series(1, 50)" for name in ("emptied", "truncated")]
    database.execute(*fill)
    run(database, spark, tmp_path)
    assert replica(tmp_path) == source(database)
    lose(database)
    run(database, spark, tmp_path)
    assert replica(tmp_path) == source(database)
    assert source(database)["truncated"] == []
    database.execute(*fill, "UPDATE orders SET note = 'streamed' WHERE id = 7")
    several = {"snapshot__max__threads": "2", "snapshot__max__threads__multiplier": "2"}
    run(database, spark, tmp_path, **several)
    assert replica(tmp_path) == source(database)
    lose(database)
    run(database, spark, tmp_path, **several)
    assert replica(tmp_path) == source(database)
    database.execute("DELETE FROM orders WHERE id = 7")
    run(database, spark, tmp_path, **several)
    assert replica(tmp_path) == source(database)
