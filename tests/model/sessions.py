"""Random transactions of several sessions, and what a consumer must know of the tables after each change."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Collection
from typing import Any
from uuid import uuid4

import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tailrace.connectors.base import Offset
from tests.behaviour.capture import Capture, reader
from tests.conftest import Database

SESSIONS = 3
SCHEMA = """
CREATE TABLE numbers (id bigint PRIMARY KEY, v int);
CREATE TABLE words (a text COLLATE "C", b int, v int, PRIMARY KEY (b, a));
CREATE TABLE bag (v int);
CREATE TABLE late (id uuid PRIMARY KEY, v int);
ALTER TABLE numbers REPLICA IDENTITY FULL;
ALTER TABLE words REPLICA IDENTITY FULL;
ALTER TABLE bag REPLICA IDENTITY FULL;
INSERT INTO numbers SELECT n * 10, 0 FROM generate_series(1, 40) n;
INSERT INTO words SELECT chr(64 + n % 20 + 32 * (n % 2)), n / 20, 0 FROM generate_series(1, 40) n;
INSERT INTO bag SELECT n % 7 FROM generate_series(1, 20) n;
INSERT INTO late SELECT md5(n::text)::uuid, 0 FROM generate_series(1, 20) n;
"""
TABLES = {"numbers": ("id",), "words": ("b", "a"), "bag": (), "late": ("id",)}
STATEMENTS = [
    "INSERT INTO numbers VALUES ({n}, {m}) ON CONFLICT DO NOTHING",
    "UPDATE numbers SET v = v + 1 WHERE id BETWEEN {n} AND {n} + 30",
    "UPDATE numbers SET id = {m} * 10 + 3 WHERE id = {n} AND NOT EXISTS (SELECT FROM numbers WHERE id = {m} * 10 + 3)",
    "DELETE FROM numbers WHERE id BETWEEN {n} AND {n} + 15",
    "INSERT INTO words VALUES (chr(65 + {m} % 50), {n} % 3, 7) ON CONFLICT DO NOTHING",
    "UPDATE words SET v = v + 1 WHERE b = {n} % 3 AND a < chr(65 + {m} % 50)",
    "UPDATE words SET a = a || '~' WHERE b = {n} % 3 AND a = chr(65 + {m} % 50)",
    "DELETE FROM words WHERE a = chr(65 + {m} % 50)",
    "INSERT INTO bag VALUES ({m})",
    "UPDATE bag SET v = v + 1 WHERE v = {m} % 9",
    "DELETE FROM bag WHERE v = {m} % 9",
    "UPDATE late SET v = v + 1 WHERE id < md5('{n}')::uuid",
    "UPDATE late SET id = md5('{n}{m}')::uuid WHERE id = (SELECT min(id) FROM late)",
]


EXAMPLES = int(os.environ.get("TAILRACE_MODEL_EXAMPLES", "1"))


class History:
    """What a consumer knows: each table's rows, by key or counted, and the snapshot they belong to."""

    def __init__(self) -> None:
        self.rows: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in TABLES}
        self.snapshots: dict[str, str] = {}
        self.truncates: Counter[str] = Counter()

    def apply(self, change: dict[str, Any], unread: Collection[str]) -> None:
        """One change; raises AssertionError where it contradicts what came before.

        Of tables in `unread` some rows are not known yet, so changes may come before them. A table that was truncated
        is empty even for older snapshots (TRUNCATE is not MVCC-safe), so changes before the truncate may miss rows.
        """
        table, op = change["table"].rpartition(".")[2], change["op"]
        is_loose = table in unread or self.truncates[table] > 0
        known = self.rows[table]
        before, after = old(known, change), _row(change["after"])
        if op == "r" and change["snapshot"] == "incremental":
            assert known[after] > 0, f"{table}: read {after} of a signal, which is not there"
            return
        if op == "r":
            self._snapshot(table, change["of"])
            for other in of_key(known, table, change["after"]):
                assert other == after, f"{table}: read {after}, which steps back from {other}"
                del known[other]
        elif op == "t":
            known.clear()
            self.truncates[table] -= 1
        elif op in "ud":
            assert known[before] > 0 or is_loose, f"{table}: {op} of a row that is not there: {before}"
            known[before] = max(known[before] - 1, 0)
        if op in "cur":
            assert op != "c" or not TABLES[table] or not known[after], f"{table}: created twice: {after}"
            known[after] += 1

    def _snapshot(self, table: str, id_: str) -> None:
        if self.snapshots.get(table) != id_:
            self.snapshots[table] = id_
            self.rows[table].clear()


def old(known: Collection[tuple[Any, ...]], change: dict[str, Any]) -> tuple[Any, ...]:
    """The row that a change is about, as it was: its old image or, where that has the key alone or is not there, the
    known row of that key; empty where there is none."""
    before = change["before"]
    is_whole = before is not None and (before["v"] is not None or not TABLES[_name(change)])
    if is_whole or change["op"] not in "ud":
        return _row(before)
    found = of_key(known, _name(change), before or change["after"])
    return found[0] if found else ()


def of_key(known: Collection[tuple[Any, ...]], table: str, image: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The known rows that have the key of an image."""
    places = [list(image).index(name) for name in TABLES[table]]
    key = _row(image)
    counts = known if isinstance(known, Counter) else dict.fromkeys(known, 1)
    return [row for row in counts if places and counts[row] and all(row[at] == key[at] for at in places)]


def _name(change: dict[str, Any]) -> str:
    name: str = change["table"].rpartition(".")[2]
    return name


def _row(image: dict[str, Any] | None) -> tuple[Any, ...]:
    return () if image is None else tuple(image.values())


class Sessions(RuleBasedStateMachine):
    """Sessions that write beside a pipeline over a schema of their own; `properties` are those of the pipeline."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.schema = f"s{uuid4().hex[:8]}"
        with self.database.connect() as connection:
            connection.execute(f"CREATE SCHEMA {self.schema}; SET search_path TO {self.schema}; {SCHEMA}".encode())
        self.sessions = [psycopg.connect(self.database.dsn) for _ in range(SESSIONS)]
        for session in self.sessions:
            session.execute(f"SET search_path TO {self.schema}".encode())
            session.commit()
        self.busy: set[int] = set()
        self.history = History()
        self.capture: Capture

    def capturing(self, **properties: str) -> None:
        """Begin to capture the schema; a property's dots are written as two underscores."""
        given = {name.replace("__", "."): value for name, value in properties.items()}
        names = {
            "schema.include.list": self.schema,
            "slot.name": self.schema,
            "publication.name": self.schema,
            "publication.autocreate.mode": "filtered",
            "skipped.operations": "none",
        }
        self.capture = Capture(self.database, {**names, **given})

    @rule(
        session=st.integers(0, SESSIONS - 1),
        statement=st.sampled_from(STATEMENTS),
        n=st.integers(0, 420),
        m=st.integers(0, 60),
        inner=st.sampled_from(["keep", "keep", "undo", "none"]),
        at_once=st.sampled_from([True, True, False]),
    )
    def write(self, session: int, statement: str, n: int, m: int, inner: str, at_once: bool) -> None:
        connection = self.sessions[session]
        text = statement.format(n=n, m=m).encode()
        try:
            connection.execute("SET lock_timeout = '20ms'")
            if inner == "none":
                connection.execute(text)
            else:
                with connection.transaction(force_rollback=inner == "undo"):
                    connection.execute(text)
            self.busy.add(session)
            if at_once:
                self.end(session, commit=True, lazy=False)
        except psycopg.errors.Error:  # a lock of another session, or a key that is there: the application gives up
            connection.rollback()
            self.busy.discard(session)

    @rule(table=st.sampled_from(["bag", "numbers"]))
    def truncate(self, table: str) -> None:
        """At once: whoever holds the table's lock keeps the pipeline waiting, which is alone in its thread here."""
        with self.database.connect() as connection:
            connection.execute("SET lock_timeout = '20ms'")
            with contextlib.suppress(psycopg.errors.LockNotAvailable):
                connection.execute(f"TRUNCATE {self.schema}.{table}".encode())
                self.history.truncates[table] += self.capture.offset["phase"] != "stream"

    @rule(session=st.integers(0, SESSIONS - 1), commit=st.sampled_from([True, True, False]), lazy=st.booleans())
    def end(self, session: int, commit: bool, lazy: bool) -> None:
        connection = self.sessions[session]
        if commit:
            connection.execute(f"SET LOCAL synchronous_commit = {'off' if lazy else 'on'}".encode())
            connection.commit()
        else:
            connection.rollback()
        self.busy.discard(session)

    def _step(self) -> bool:
        start = self.capture.offset
        end = self.capture.reader.head(start, None, None)
        if end != start:
            self._commit(start, end)
        return end != start

    def _commit(self, start: Offset, end: Offset) -> None:
        """Read a batch and take it in."""
        raise NotImplementedError

    def agree(self) -> None:
        """The tables are what the history says."""
        for table in TABLES:
            with self.database.connect() as connection:
                found = connection.execute(f"SELECT * FROM {self.schema}.{table}".encode()).fetchall()
            source = Counter(tuple(str(value) for value in row) for row in found)
            replica = Counter({tuple(str(v) for v in row): n for row, n in self.history.rows[table].items() if n})
            assert replica == source, table

    def settle(self) -> None:
        """All sessions commit."""
        for session in range(SESSIONS):
            self.end(session, commit=True, lazy=False)

    def restart(self) -> None:
        self.capture.close()
        self.capture.reader = reader(self.capture.config)

    def close(self) -> None:
        for session in self.sessions:
            session.close()
        self.capture.close()
        with self.database.connect() as connection:
            self._drop_slot(connection)
            connection.execute(f"DROP PUBLICATION IF EXISTS {self.schema}; DROP SCHEMA {self.schema} CASCADE".encode())

    def _drop_slot(self, connection: psycopg.Connection[Any]) -> None:
        """As soon as the server has noticed that its reader is gone."""
        query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
        for _ in range(200):
            with contextlib.suppress(psycopg.errors.ObjectInUse):
                connection.execute(query, [self.schema])
                return
            time.sleep(0.05)


def run(machine: type[Sessions], database: Database) -> None:
    """As many histories as asked for."""
    run_state_machine_as_test(
        type(machine.__name__, (machine,), {"database": database}),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            phases=[Phase.generate],
        ),
    )
