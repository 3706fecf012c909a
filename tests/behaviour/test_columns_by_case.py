"""Columns whose names differ by case: their table is set aside with a remedy that helps, and all others go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tailrace.sinks.replica import aside
from tailrace.sinks.replica.target import read_table
from tests.behaviour.following import Following, following
from tests.conftest import Database

TABLES = (
    'CREATE TABLE twins (id int PRIMARY KEY, "Name" text, name text)',
    "INSERT INTO twins VALUES (1, 'A', 'a')",
    "CREATE TABLE later (id int PRIMARY KEY, name text)",
    "INSERT INTO later VALUES (1, 'a')",
    'CREATE TABLE keys (id int, "Id" int, v text, PRIMARY KEY (id, "Id"))',
    "INSERT INTO keys VALUES (1, 2, 'a')",
    'CREATE TABLE odd ("a.b" int PRIMARY KEY, "a,b" text, " " text, "a;b{}()=" text)',
    "INSERT INTO odd VALUES (1, 'x', 'y', 'z')",
)


def until(condition: Callable[[], bool], pipeline: Following) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert pipeline.failure is None, pipeline.failure
        assert time.monotonic() < deadline
        time.sleep(0.1)


def told(pipeline: Following) -> dict[str, str]:
    """The tables that are set aside, and why."""
    return {each.name: each.error for each in aside.tables_set_aside(str(pipeline.folder / "lake"), {})}


def test_such_a_table_is_set_aside_alone(database: Database, tmp_path: Path) -> None:
    database.execute(*TABLES)
    with following(database, tmp_path) as pipeline:
        until(lambda: {*told(pipeline)} == {"public.twins", "public.keys"}, pipeline)
        error = told(pipeline)["public.twins"]
        assert "the columns Name and name differ by case alone" in error
        assert "column.exclude.list=public.twins.(?-i:name)" in error
        database.execute('ALTER TABLE later ADD "Name" text', "INSERT INTO later VALUES (2, 'b', 'B')")
        database.execute("""UPDATE odd SET "a,b" = 'x2'""", "UPDATE twins SET name = 'b'")
        until(lambda: "public.later" in told(pipeline), pipeline)
        root = str(tmp_path / "lake")
        until(lambda: read_table(root, "public.odd").to_pylist()[0]["a,b"] == "x2", pipeline)
        assert read_table(root, "public.odd").to_pylist() == [{"a.b": 1, "a,b": "x2", " ": "y", "a;b{}()=": "z"}]
        assert read_table(root, "public.later").to_pylist() == [{"id": 1, "name": "a"}]


def test_leaving_out_one_of_them_is_the_remedy(database: Database, tmp_path: Path) -> None:
    database.execute(*TABLES)
    with following(database, tmp_path) as pipeline:
        until(lambda: "public.twins" in told(pipeline), pipeline)
    excluded = r"public\.twins\.(?-i:name)"
    with following(database, tmp_path, column__exclude__list=excluded) as pipeline:
        pipeline.signal("execute-snapshot", {"data-collections": ["public.twins"], "type": "blocking"})
        until(lambda: "public.twins" not in told(pipeline), pipeline)
        assert read_table(str(tmp_path / "lake"), "public.twins").to_pylist() == [{"id": 1, "Name": "A"}]
