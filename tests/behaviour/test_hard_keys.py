"""Keys that are unique at commit alone, and keys that are equal and not identical: the replica is the table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import SinkError
from tailrace.pipeline.reconcile import Reconciler
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
    deadline = time.monotonic() + 200
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
        rows = pipeline.replica(table)
    except SinkError:
        return []
    rows = rows.select([name for name in columns if name in rows.column_names])
    return sorted(str(tuple(str(value) for value in row.values())) for row in rows.to_pylist())


@pytest.mark.parametrize(
    "rows", [pytest.param(500_000, id="at once", marks=pytest.mark.long), pytest.param(1, id="in parts")]
)
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


def held(pipeline: Following, table: str) -> list[Any]:
    try:
        rows: list[Any] = pipeline.replica(table).to_pylist()
        return rows
    except SinkError:
        return []


def values(pipeline: Following, table: str) -> list[str]:
    """The replica's rows without their keys."""
    return sorted(f"{{{row['n']},{row['v']}}}" for row in held(pipeline, table))


ALIKE = (
    # Pairs of values of a key column: the database says of each that they are equal.
    ("float8", "0", "-0"),
    ("real", "-0", "0"),
    ("numeric", "1.0", "1.00"),
    ("interval", "1 day", "24 hours"),
    ("interval", "1 mon", "30 days"),
    ("jsonb", '{"a": 1.0}', '{"a": 1.00}'),
    ("timestamptz", "2020-01-01 00:00+00", "2020-01-01 02:00+02"),
    ("char(5)", "a", "a  "),
    ("varchar(5)", "a", "a "),
    ("numrange", "[1,2)", "[1.0,2.00)"),
    ("float8[]", "{0,1}", "{-0,1}"),
    ("numeric[]", "{1.0}", "{1.00}"),
    ("numeric[]", "{NaN,Infinity}", "{NaN,1}"),
    ("timetz", "10:00+00", "12:00+02"),
    ("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"),
    ("numeric", "NaN", "Infinity"),
    ("numeric", "-Infinity", "1e130000"),
    ("numeric(12,3)", "NaN", "1"),
    ("float8", "NaN", "-Infinity"),
    ("date", "infinity", "-infinity"),
    ("timestamptz", "infinity", "4713-01-01 BC"),
)


@pytest.mark.parametrize("identity", ["DEFAULT", pytest.param("FULL", marks=pytest.mark.long)])
def test_keys_that_are_equal_and_not_identical(database: Database, tmp_path: Path, identity: str) -> None:
    """And keys that a number cannot hold. Each table's key changes within its value, in one and in two steps."""
    tables = [f"t{number}" for number in range(len(ALIKE))]
    for table, (kind, one, other) in zip(tables, ALIKE, strict=True):
        database.execute(
            f"CREATE TABLE {table} (n int, k {kind}, v text, PRIMARY KEY (n, k))",
            f"ALTER TABLE {table} REPLICA IDENTITY {identity}",
            f"INSERT INTO {table} VALUES (1, '{one}', 'a'), (2, '{other}', 'b'), (3, '{one}', 'c')",
        )
    infinite = ",".join(rf"public\.t{place}\.k" for place, (_, one, _) in enumerate(ALIKE) if one == "infinity")
    with following(database, tmp_path, column__out__of__range__text=infinite) as pipeline:
        for table, (_, one, other) in zip(tables, ALIKE, strict=True):
            database.execute(
                f"UPDATE {table} SET v = 'a2' WHERE n = 1",
                f"UPDATE {table} SET k = '{other}' WHERE n = 1",
                f"BEGIN; DELETE FROM {table} WHERE n = 3; INSERT INTO {table} VALUES (3, '{other}', 'c2'); COMMIT",
                f"UPDATE {table} SET k = '{one}', v = 'b2' WHERE n = 2",
                f"BEGIN; UPDATE {table} SET k = '{one}' WHERE n = 1; UPDATE {table} SET k = '{other}' WHERE n = 1; END",
                f"INSERT INTO {table} VALUES (4, '{one}', 'd'), (5, '{other}', 'e')",
                f"DELETE FROM {table} WHERE n = 4",
            )
        rows = ["{1,a2}", "{2,b2}", "{3,c2}", "{5,e}"]
        deadline = time.monotonic() + 200
        for table, (kind, one, other) in zip(tables, ALIKE, strict=True):
            while (found := values(pipeline, table)) != rows:
                assert time.monotonic() < deadline, (kind, one, other, found, held(pipeline, table))
                assert pipeline.failure is None, pipeline.failure
                time.sleep(0.2)
        reconciler = Reconciler(pipeline.definition, 20)
        for table_id in reconciler.tables([]):
            report = reconciler.compare(table_id).report
            assert report.outcome == ("equal in part" if report.not_compared else "equal"), report
            assert report.reason is None, (ALIKE[int(table_id.table[1:])], report)
