"""Kill -9 while a table is set aside, and while it is read again: nothing is lost, stored twice or in between."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tailrace.pipeline.aside import retry
from tailrace.pipeline.definition import load
from tailrace.sinks.replica.aside import SetAside, tables_set_aside
from tailrace.sinks.replica.target import read_table
from tests.crash.rig import Rig

pytestmark = pytest.mark.timeout(900)


def set_aside(rig: Rig) -> tuple[SetAside, ...]:
    return tables_set_aside(str(rig.folder / "replica"), {})


def letters(rig: Rig) -> list[tuple[str, int]]:
    """Operation and id of each change that is stored."""
    stored = read_table(str(rig.folder / "replica" / "_aside"), "public.people").to_pylist()
    return sorted((row["op"], json.loads(row["after"] or row["before"])["id"]) for row in stored)


def source(rig: Rig) -> Counter[tuple[Any, ...]]:
    with rig.connect() as connection:
        return Counter(connection.execute("SELECT id, born::text FROM people").fetchall())


@pytest.mark.parametrize(
    ("place", "nth", "driver"),
    [
        ("after-plan", 1, True),
        ("after-read", 1, False),
        ("after-table", 1, False),
        ("after-table", 2, True),
        ("after-write", 1, True),
    ],
)
def test_killed_while_a_table_is_set_aside_and_read_again(new_rig: Rig, place: str, nth: int, driver: bool) -> None:
    new_rig.properties = {"signal.poll.interval.ms": "100"}
    with new_rig.connect() as connection:
        for table in ("people", "pets"):
            connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, born date)".encode())
            connection.execute(f"INSERT INTO {table} SELECT n, '2020-01-01' FROM generate_series(1, 5) n".encode())
        new_rig.start()
        new_rig.await_all_read()
        new_rig.arm(place, nth, driver=driver)
        with connection.transaction():
            connection.execute("INSERT INTO people VALUES (6, 'infinity'), (7, '2020-01-01')")
            connection.execute("INSERT INTO pets VALUES (6, '2020-01-01')")
        new_rig.await_kill()
        connection.execute("DELETE FROM people WHERE id = 1")
        connection.execute("DELETE FROM pets WHERE id = 1")
        new_rig.await_all_read()
        new_rig.check("pets")
        assert [each.table for each in set_aside(new_rig)] == ["public.people"]
        assert sorted(id_ for id_, _ in new_rig.replica_rows("people")) == [1, 2, 3, 4, 5], "it stays as it was"
        assert letters(new_rig) == [("c", 6), ("c", 7), ("d", 1)]

        new_rig.sink = {"replica": {"path": "replica", "out_of_range": {r"public\.people\..*": "text"}}}
        new_rig.start()
        new_rig.arm(place, nth, driver=driver)
        assert retry(load(new_rig.folder / "pipeline.yaml"), ["public.people"]) is not None
        connection.execute("INSERT INTO people VALUES (8, 'infinity')")
        connection.execute("INSERT INTO pets VALUES (8, NULL)")
        new_rig.await_kill()
        connection.execute("INSERT INTO people VALUES (9, '-infinity')")
        new_rig.await_(lambda: new_rig.replica_rows("people") == source(new_rig), "it is not read again")
    new_rig.await_all_read()
    new_rig.check("pets")
    assert new_rig.replica_rows("people") == source(new_rig)
    assert set_aside(new_rig) == ()
    stored = letters(new_rig)
    assert len(set(stored)) == len(stored), "a change is stored once"
    assert set(stored) >= {("c", 6), ("c", 7), ("d", 1)}, "and stays"
