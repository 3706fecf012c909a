"""What Db2's log does not bring, and what replicas make of it. On the stand-in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.sinks.replica.descriptions import PROPERTY
from tailrace.sinks.replica.target import read_table
from tests.behaviour.streams import eventually
from tests.conformance.db2 import REGISTER, Db2Source
from tests.servers.db2.server import Db2

Rows = Callable[[], list[tuple[Any, ...]]]


@pytest.fixture
def source(db2: Db2, request: pytest.FixtureRequest) -> Iterator[Db2Source]:
    source = Db2Source(db2, f"R{abs(hash(request.node.name)) % 10**8}")
    yield source
    source.close()


@contextmanager
def following(
    spark: SparkSession, source: Db2Source, folder: Path, *columns: str, tables: str = "orders"
) -> Iterator[Rows]:
    """A replica of tables; what it gives are these columns of the rows of orders, by id."""
    config = {
        **source.properties("p"),
        "connector.class": "io.debezium.connector.db2.Db2Connector",
        "topic.prefix": "t",
        "table.include.list": rf"{source.schema}\.{tables}",
        "signal.poll.interval.ms": "100",
        "table.watch.interval.ms": "200",
    }
    content = {
        "source": {"config": config},
        "sink": {"replica": {"path": str(folder / "lake"), "read_again": {"at_most_every": "0s"}}},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    running = Pipeline(from_content(content, base=folder, where="test"), session=spark).start()
    name = f"{source.schema}.orders"

    def rows() -> list[tuple[Any, ...]]:
        running.await_(0.05)
        if not (folder / "lake" / name / "_delta_log").exists():
            return []
        found = read_table(str(folder / "lake"), name).to_pylist()
        return sorted(tuple(row[column] for column in ("id", *columns)) for row in found)

    try:
        yield rows
    finally:
        running.stop()


@pytest.mark.long
def test_a_table_whose_registration_stopped_is_read_again(
    spark: SparkSession, source: Db2Source, tmp_path: Path
) -> None:
    source.create("orders")
    table, place = source.name("orders"), f"WHERE SOURCE_TABLE = 'orders' AND SOURCE_OWNER = '{source.schema}'"
    source.run(f"INSERT INTO {table} VALUES (1, 1, NULL)")
    with following(spark, source, tmp_path, "v") as rows:
        eventually(lambda: rows() == [(1, 1)])
        source.run(f"UPDATE {REGISTER} SET STATE = 'I' {place}")
        source.server.services("reinit")
        source.run(f"INSERT INTO {table} VALUES (2, 2, NULL)", f'UPDATE {table} SET "v" = 10 WHERE "id" = 1')
        source.create("other")  # the log goes on
        source.run(f"INSERT INTO {source.name('other')} VALUES (1, 1, NULL)")
        eventually(lambda: rows() and is_noted(tmp_path))
        source.run(f"UPDATE {REGISTER} SET STATE = 'A' {place}")
        source.server.services("reinit")
        source.run(f"INSERT INTO {table} VALUES (3, 3, NULL)")
        eventually(lambda: rows() == [(1, 10), (2, 2), (3, 3)])


@pytest.mark.parametrize(
    "key", ["PRIMARY KEY", *(pytest.param(each, marks=pytest.mark.long) for each in ("", "read before"))]
)
def test_a_table_that_is_registered_later_is_read_if_the_log_lacks_rows_of_it(
    spark: SparkSession, source: Db2Source, tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    """With and without a key, and one that the first snapshot has read."""
    table, is_key = source.name("orders"), key != ""
    made = f'CREATE TABLE {table} ("id" INTEGER NOT NULL {"PRIMARY KEY" if is_key else ""}, "v" INTEGER)'
    rows_before = (made, f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    source.create("other")
    source.run(f"INSERT INTO {source.name('other')} VALUES (1, 1, NULL)")
    if key == "read before":
        source.run(*rows_before)
    with following(spark, source, tmp_path, "v", tables=".*") as rows, caplog.at_level(logging.WARNING):
        eventually(lambda: rows() is not None and (tmp_path / "lake" / f"{source.schema}.other").exists())
        if key == "read before":
            eventually(lambda: rows() == [(1, 1), (2, 2)])
            source.run(f'UPDATE {table} SET "v" = 20 WHERE "id" = 2')
        else:
            source.run(*rows_before)
        source.server.capture((source.schema, "orders"))
        source.run(f"INSERT INTO {table} VALUES (3, 3)")
        eventually(lambda: rows() == [(1, 1), (2, 20 if key == "read before" else 2), (3, 3)])
    assert "written before its changes were captured" in caplog.text


def is_noted(folder: Path) -> bool:
    """Whether an offset of the pipeline has a table that is not captured."""
    files = [each for each in (folder / "state").rglob("offsets/*") if not each.name.startswith(".")]
    return any("stopped" in each.read_text(encoding="utf-8") for each in files)


def test_large_objects_of_a_replica_are_those_of_the_table(
    spark: SparkSession, source: Db2Source, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = source.name("orders")
    source.run(
        f'CREATE TABLE {table} ("id" INTEGER NOT NULL PRIMARY KEY, "v" INTEGER, "body" CLOB(2G), "raw" BLOB(2G))'
    )
    source.server.capture((source.schema, "orders"))
    source.run(f"INSERT INTO {table} VALUES (1, 1, 'one', CAST(X'01' AS BLOB)), (2, 2, NULL, NULL)")
    with following(spark, source, tmp_path, "v", "body", "raw") as rows, caplog.at_level(logging.WARNING):
        eventually(lambda: rows() == [(1, 1, "one", b"\x01"), (2, 2, None, None)])
        source.run(
            f'UPDATE {table} SET "v" = 10 WHERE "id" = 1',
            f'UPDATE {table} SET "body" = \'two\' WHERE "id" = 2',
            f"INSERT INTO {table} VALUES (3, 3, 'three', CAST(X'03' AS BLOB)), (4, 4, 'four', NULL)",
            f'DELETE FROM {table} WHERE "id" = 4',
        )
        eventually(lambda: rows() == [(1, 10, "one", b"\x01"), (2, 2, "two", None), (3, 3, "three", b"\x03")])
        assert "incomplete" not in caplog.text


def is_described(folder: Path, source: Db2Source) -> bool:
    """Whether what the catalog says of the table is stored with the replica."""
    table = DeltaTable(str(folder / "lake" / f"{source.schema}.orders"))
    return PROPERTY in table.metadata().configuration


@pytest.mark.parametrize(
    "event", ["created again", *(pytest.param(each, marks=pytest.mark.long) for each in ("loaded", "partitioned"))]
)
def test_rows_that_come_without_a_change_in_the_log_are_read(
    spark: SparkSession, source: Db2Source, tmp_path: Path, caplog: pytest.LogCaptureFixture, event: str
) -> None:
    """A table that is created again keeps its registration, and is not DATA CAPTURE CHANGES."""
    server, schema, table = source.server, source.schema, source.name("orders")
    source.create("orders")
    source.run(f"INSERT INTO {table} VALUES (1, 1, NULL), (2, 2, NULL)")
    server.parts(schema, "orders", "PART0")
    changes = (f"INSERT INTO {table} VALUES (3, 3, NULL)", f'DELETE FROM {table} WHERE "id" = 1')
    with following(spark, source, tmp_path, "v") as rows, caplog.at_level(logging.WARNING):
        eventually(lambda: rows() == [(1, 1), (2, 2)] and is_described(tmp_path, source))
        if event == "created again":
            columns = '"id" INTEGER NOT NULL PRIMARY KEY, "v" INTEGER, "note" VARCHAR(400)'
            source.run(f"DROP TABLE {table}", f"CREATE TABLE {table} ({columns})")
            source.run(f"INSERT INTO {table} VALUES (2, 2, NULL), (3, 3, NULL)")
            eventually(lambda: rows() and "until ALTER TABLE ... DATA CAPTURE CHANGES" in caplog.text)
            for state in "IA":  # ends what is asked for
                source.run(f"UPDATE {REGISTER} SET STATE = '{state}' WHERE SOURCE_OWNER = '{schema}'")
                server.services("reinit")
        else:
            server.without_log(schema, "orders", *changes)
            if event == "loaded":
                server.loaded(schema, "orders", "20261127010203", "20261127010205")
            else:
                server.parts(schema, "orders", "PART0", "PART1")
        source.create("other")  # the log goes on
        source.run(f"INSERT INTO {source.name('other')} VALUES (1, 1, NULL)")
        eventually(lambda: rows() == [(2, 2), (3, 3)])
        source.run(f"INSERT INTO {table} VALUES (4, 4, NULL)")
        eventually(lambda: rows() == [(2, 2), (3, 3), (4, 4)])
