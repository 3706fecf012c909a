"""Tables with odd names: read in text and binary form, written into a replica, and found by `reconcile`."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from tailrace.model.table import TableId
from tailrace.operate.status import replica_rows
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.reconcile import Reconciler
from tailrace.pipeline.runner import Pipeline
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.target import read_table
from tests.behaviour.capture import capturing
from tests.behaviour.engines import place, sink
from tests.behaviour.streams import properties
from tests.conftest import Database

NAMES = (
    *("Müller", "müller", "MÜLLER", "a!b", "日本", "emoji 😀", "Ελλάδα", "אבג"),
    *("two words", " leads", "trails ", "tab\there", "line\nbreak", "back\\slash", "sl/ash", ".."),
    *("per%cent", "per%25cent", "ha#sh", "wh?at", "a&b=c", "a;b", "a:b", "a,b", "st*r", "a|b", "<a>", "a^b"),
    *('quo"te', "apo'strophe", "back`tick", "(a)", "[a]", "{a}", "$a", "@a", "a+b", "a~b", "v1.2", "Orders", "orders"),
    *("!21", "x" * 63, "日" * 21, "ß" * 31),
)
QUOTED = ['"Mixed Case"', '"per%cent %s"', '"quo""te"', '"dot.ted"', '"grün 表"', '"back\\slash"', '"sel ect\'"']
SCHEMAS = (("public", NAMES), ("a.b", ("c",)), ("a", ("b.c",)), ("Ünïcode schema", ("t%able",)))


def tables() -> list[TableId]:
    return [TableId("", schema, name) for schema, names in SCHEMAS for name in names]


def every(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> None:
    for number, table in enumerate(tables()):
        name = sql.Identifier(table.schema, table.table)
        connection.execute(sql.SQL(statement).format(table=name, number=sql.Literal(number)))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_odd_names(database: Database, session: SparkSession, tmp_path: Path) -> None:
    with database.connect() as connection:
        for schema, _ in SCHEMAS[1:]:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        every(connection, "CREATE TABLE {table} (id int PRIMARY KEY, v int)")
        every(connection, "INSERT INTO {table} VALUES (1, {number})")
    content = {
        "source": {"config": properties(database)},
        "sink": {"replica": sink(tmp_path)},
        "checkpoint": "state",
        "trigger": "availableNow",
    }
    definition = from_content(content, base=tmp_path, where="test")
    assert Pipeline(definition, session).start().await_(300)
    with database.connect() as connection:
        every(connection, "INSERT INTO {table} VALUES (2, -{number})")
        every(connection, "DELETE FROM {table} WHERE id = 1")
    assert Pipeline(definition, session).start().await_(300)
    root, options = place(tmp_path)
    for number, table in enumerate(tables()):
        assert read_table(root, table, options).to_pylist() == [{"id": 2, "v": -number}], table
    assert len(lake_at(root, options).names()) == len(tables())
    assert replica_rows(definition) == {str(table): 1 for table in tables()}
    reconciler = Reconciler(definition, 1)
    for table in tables():
        found = reconciler.compare(TableId(database.name, table.schema, table.table)).report
        assert (found.outcome, found.source_rows) == ("equal", 1), (table, found)


def test_odd_names_by_both_roads(any_database: Database) -> None:
    database = any_database
    for schema in ("public", *QUOTED[:2]):
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for name in QUOTED:
            database.execute(f"CREATE TABLE {schema}.{name} (id int PRIMARY KEY, {name} text)")
            database.execute(f"INSERT INTO {schema}.{name} VALUES (1, 'of {schema}')")
    tables = sorted(f"{schema}.{name}" for schema in ("public", *QUOTED[:2]) for name in QUOTED)
    with capturing(database) as capture:
        snapshot = capture.step()
        for table in tables:
            database.execute(f"UPDATE {table} SET id = id")
        streamed = capture.step()
    assert len(snapshot) == len(streamed) == len(tables)
    assert sorted(row["table"] for row in snapshot) == sorted(_unquoted(table) for table in tables)
    assert {row["table"]: row["after"] for row in snapshot} == {row["table"]: row["after"] for row in streamed}


def _unquoted(name: str) -> str:
    return name.replace('""', "\0").replace('"', "").replace("\0", '"')
