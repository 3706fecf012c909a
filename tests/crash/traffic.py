"""Live traffic for the crash tests: seeded writers over tables of every kind a replica has trouble with."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import psycopg

SCHEMA = """
CREATE SEQUENCE fresh;
CREATE TABLE keyed (id bigint PRIMARY KEY, name text, price numeric(10,2), at timestamptz);
CREATE TABLE pair (a int, b text, v int, PRIMARY KEY (a, b));
CREATE TABLE bag (kind text, v int);
ALTER TABLE bag REPLICA IDENTITY FULL;
CREATE TABLE large (id int PRIMARY KEY, small int, big text);
ALTER TABLE large ALTER big SET STORAGE EXTERNAL;
CREATE TABLE wiped (id bigint PRIMARY KEY, v text);
INSERT INTO keyed SELECT nextval('fresh'), 'name ' || n, n, now() FROM generate_series(1, 200) n;
INSERT INTO pair SELECT n % 10, 'b' || n, n FROM generate_series(1, 100) n;
INSERT INTO bag SELECT 'kind ' || n % 5, n % 7 FROM generate_series(1, 200) n;
INSERT INTO large SELECT n, 0, repeat(md5(n::text), 100) FROM generate_series(1, 50) n;
INSERT INTO wiped SELECT nextval('fresh'), 'v' FROM generate_series(1, 20);
"""
TABLES = ("keyed", "pair", "bag", "large", "wiped")

# What stands for {row} is the place of a row drawn at random, for {n} a small number.
STATEMENTS = (
    "INSERT INTO keyed SELECT nextval('fresh'), 'n{n}', {n} / 3.0, now() FROM generate_series(1, 1 + {n} % 4)",
    "UPDATE keyed SET price = price + {n}, at = clock_timestamp() WHERE id % 20 = {n} % 20",
    "UPDATE keyed SET id = nextval('fresh') WHERE id IN (SELECT id FROM keyed ORDER BY id OFFSET {row} LIMIT 2)",
    "DELETE FROM keyed WHERE id IN (SELECT id FROM keyed ORDER BY id OFFSET {row} LIMIT 3)",
    "INSERT INTO pair VALUES ({n}, 'new {row}', 0) ON CONFLICT (a, b) DO UPDATE SET v = pair.v + 1",
    "UPDATE pair SET b = b || '.', v = {n} WHERE (a, b) IN (SELECT a, b FROM pair ORDER BY a, b OFFSET {row} LIMIT 1)",
    "DELETE FROM pair WHERE a = {n} % 10 AND v % 9 = 0",
    "INSERT INTO bag SELECT 'kind {n}', v % 3 FROM generate_series(1, 1 + {n} % 5) v",
    "UPDATE bag SET v = v + 1 WHERE ctid IN (SELECT ctid FROM bag OFFSET {row} LIMIT 2)",
    "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag OFFSET {row} LIMIT 3)",
    "UPDATE large SET small = small + 1 WHERE id % 10 = {n} % 10",
    "UPDATE large SET big = repeat(md5('{row}'), 100) WHERE id = 1 + {n}",
    "UPDATE large SET id = id + 1000 WHERE id = (SELECT id FROM large ORDER BY id OFFSET {n} LIMIT 1) AND id < 1000",
    "UPDATE large SET id = id - 1000, small = -1 WHERE id = (SELECT min(id) FROM large WHERE id > 1000)",
    "INSERT INTO wiped SELECT nextval('fresh'), 'v{n}' FROM generate_series(1, 1 + {n} % 3)",
    "UPDATE wiped SET v = v || '+' WHERE id % 3 = {n} % 3",
)
_PAUSE_S, _REST_S = 0.02, 0.5
# More than these, and a pipeline that takes its time to come back never catches up: from then on it is a trickle.
_RUSH = 150


class Traffic:
    """Writers, each a thread with its own connection and seed, from `with` to its end.

    What the server aborts (a deadlock, a crash) is gone and the writer goes on, as an application does.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], seed: int, writers: int = 2) -> None:
        self._connect = connect
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(seed * 10 + n,)) for n in range(writers)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _write(self, seed: int) -> None:
        draw, done = random.Random(seed), 0
        while not self._ended.is_set():
            try:
                with self._connect() as connection:
                    while not self._ended.wait(_PAUSE_S if done < _RUSH else _REST_S):
                        self._transaction(connection, draw)
                        done += 1
            except psycopg.OperationalError:  # noqa: PERF203  # the server is away for a moment
                self._ended.wait(0.2)

    def _transaction(self, connection: psycopg.Connection[Any], draw: random.Random) -> None:
        try:
            with connection.transaction(force_rollback=draw.random() < 0.15):
                for _ in range(draw.randint(1, 6)):
                    with connection.transaction(force_rollback=draw.random() < 0.1):
                        connection.execute(_statement(draw).encode())
        except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
            return


def _statement(draw: random.Random) -> str:
    if draw.random() < 0.01:
        return "TRUNCATE wiped"
    return draw.choice(STATEMENTS).format(n=draw.randrange(40), row=draw.randrange(100))
