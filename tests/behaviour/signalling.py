"""Helpers for signals by a table: a table to snapshot, its writers, and the rows of a captured pipeline."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg

from tests.behaviour.capture import Capture
from tests.conftest import Database

SIGNALS = "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
ROWS = (
    "CREATE TABLE t (id int PRIMARY KEY, version int NOT NULL, note text)",
    "INSERT INTO t SELECT n, 0, 'note ' || n FROM generate_series(1, 10) n",
)
GIVEN = {
    "signal__poll__interval__ms": "1",
    "signal__data__collection": "public.signals",
    "incremental__snapshot__chunk__size": "3",
    "snapshot__mode": "no_data",
}

Row = dict[str, Any]


def send(database: Database, id_: str, kind: str, data: str | None) -> None:
    """Insert a signal."""
    with database.connect() as connection:
        connection.execute("INSERT INTO signals VALUES (%s, %s, %s)", [id_, kind, data])


def execute(database: Database, id_: str, more: str = "", table: str = "public.t") -> None:
    """Ask for a snapshot."""
    send(database, id_, "execute-snapshot", f'{{"data-collections": ["{table}"]{more}}}')


def drained(capture: Capture) -> list[Row]:
    """All rows of all steps until nothing more comes, signals aside."""
    found: list[Row] = []
    idle = 0
    while idle < 2:
        before = capture.offset
        found += [row for row in capture.step() if row["table"] != "public.signals"]
        idle = idle + 1 if capture.offset == before else 0
    return found


def keyed(rows: list[Row]) -> list[tuple[str, int]]:
    """Operation and id of each row."""
    return [(row["op"], (row["after"] or row["before"])["id"]) for row in rows]


def write(database: Database, seed: int, over: threading.Event) -> None:
    """Changes of many kinds: each sets a version that no row of that key has had."""
    draw = random.Random(seed)
    version = seed * 1_000_000
    with psycopg.connect(database.dsn) as connection:
        connection.execute(f"SET synchronous_commit = {draw.choice(['on', 'off'])}")
        while not over.is_set():
            for _ in range(draw.randint(1, 4)):
                version += 1
                key = draw.randint(1, 40)
                # One writer a key, so that versions of a key ascend in commit order.
                key = key - key % 3 + seed
                statement = draw.choice(
                    [
                        "INSERT INTO t VALUES (%(key)s, %(v)s, 'x') ON CONFLICT (id) DO UPDATE SET version = %(v)s",
                        "UPDATE t SET version = %(v)s WHERE id = %(key)s",
                        "DELETE FROM t WHERE id = %(key)s",
                    ]
                )
                if draw.random() < 0.2:
                    connection.execute("SAVEPOINT s")
                    connection.execute("UPDATE t SET version = -1 WHERE id = %s", [key])
                    connection.execute("ROLLBACK TO s")
                connection.execute(statement, {"key": key, "v": version})
            if draw.random() < 0.15:
                connection.rollback()
            else:
                connection.commit()
