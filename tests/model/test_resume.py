"""A first snapshot of several micro-batches against a model: transactions of every kind beside it, a crash anywhere.

Every old row image must be what the history so far says of its key, so nothing may be missing, doubled or step back.
The suite runs a few histories, `make model` thousands (TAILRACE_MODEL_EXAMPLES).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Collection
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tailrace.connectors.base import Offset
from tailrace.connectors.postgres.connector import PostgresConnector
from tests.behaviour.capture import Capture, rows
from tests.conftest import Database

EXAMPLES = int(os.environ.get("TAILRACE_MODEL_EXAMPLES", "8"))
SESSIONS = 3
SCHEMA = """
CREATE TABLE numbers (id bigint PRIMARY KEY, v int);
CREATE TABLE words (a text COLLATE "C", b int, v int, PRIMARY KEY (b, a));
CREATE TABLE bag (v int);
CREATE TABLE late (id uuid PRIMARY KEY, v int);
ALTER TABLE numbers REPLICA IDENTITY FULL;
ALTER TABLE words REPLICA IDENTITY FULL;
ALTER TABLE bag REPLICA IDENTITY FULL;
ALTER TABLE late REPLICA IDENTITY FULL;
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


class History:
    """What a consumer knows: each table's rows, by key or counted, and the snapshot they belong to."""

    def __init__(self) -> None:
        self.rows: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in TABLES}
        self.snapshots: dict[str, int] = {}

    def apply(self, change: dict[str, Any], unread: Collection[str]) -> None:
        """One change; raises AssertionError where it contradicts what came before.

        Of tables in `unread` some rows are not known yet, so changes may come before them.
        """
        is_loose = change["table"].rpartition(".")[2] in unread
        table, op = change["table"].rpartition(".")[2], change["op"]
        known = self.rows[table]
        before, after = (_row(change[image]) for image in ("before", "after"))
        if op == "r":
            self._snapshot(table, change.get("began") or change["source"]["lsn"])
            keys = TABLES[table]
            place = [list(change["after"]).index(name) for name in keys]
            for old in [row for row in known if known[row] and keys and all(row[at] == after[at] for at in place)]:
                assert old == after, f"{table}: read {after}, which steps back from {old}"
                del known[old]
        elif op == "t":
            known.clear()
        elif op in "ud":
            assert known[before] > 0 or is_loose, f"{table}: {op} of a row that is not there: {before}"
            known[before] = max(known[before] - 1, 0)
        if op in "cur":
            assert op != "c" or not TABLES[table] or not known[after], f"{table}: created twice: {after}"
            known[after] += 1

    def _snapshot(self, table: str, number: int) -> None:
        if self.snapshots.get(table) != number:
            self.snapshots[table] = number
            self.rows[table].clear()


def _row(image: dict[str, Any] | None) -> tuple[Any, ...]:
    return () if image is None else tuple(image.values())


class Resuming(RuleBasedStateMachine):
    """Sessions that write, and a pipeline that goes on step by step, is killed and started again."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        schema = f"s{uuid4().hex[:8]}"
        with self.database.connect() as connection:
            connection.execute(f"CREATE SCHEMA {schema}; SET search_path TO {schema}; {SCHEMA}".encode())
        self.schema = schema
        self.sessions = [psycopg.connect(self.database.dsn) for _ in range(SESSIONS)]
        for session in self.sessions:
            session.execute(f"SET search_path TO {schema}".encode())
            session.commit()
        self.busy: set[int] = set()
        names = {
            "schema.include.list": schema,
            "slot.name": schema,
            "publication.name": schema,
            "publication.autocreate.mode": "filtered",
            "snapshot.max.threads": "2",
            "snapshot.max.threads.multiplier": "3",
            "skipped.operations": "none",
        }
        self.capture = Capture(self.database, names)
        self.history = History()
        self.planned: tuple[Offset, Offset] | None = None

    @initialize()
    def begin(self) -> None:
        self._step()

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

    @rule(session=st.integers(0, SESSIONS - 1), commit=st.sampled_from([True, True, False]), lazy=st.booleans())
    def end(self, session: int, commit: bool, lazy: bool) -> None:
        connection = self.sessions[session]
        if commit:
            connection.execute(f"SET LOCAL synchronous_commit = {'off' if lazy else 'on'}".encode())
            connection.commit()
        else:
            connection.rollback()
        self.busy.discard(session)

    @rule()
    def step(self) -> None:
        if self._may_plan():
            self._step()

    @precondition(lambda self: not self.busy)
    @rule(reads=st.booleans())
    def crash_before_commit(self, reads: bool) -> None:
        """The batch is planned, perhaps read, and planned again by the next process."""
        start = self.capture.offset
        end = self.capture.connector.head(start, None, None)
        if end != start:
            splits = self.capture.connector.plan(start, end)
            if reads:
                rows(chunk for split in splits for chunk in self.capture.connector.read(split))
        self._restart()
        if end != start:
            self._commit(start, end)

    @precondition(lambda self: not self.busy)
    @rule()
    def crash_after_commit(self) -> None:
        self._restart()
        self._step()

    def teardown(self) -> None:
        try:
            for session in range(SESSIONS):
                self.end(session, commit=True, lazy=False)
            for _ in range(200):
                if not self._step() and self.capture.offset["phase"] == "stream":
                    break
            for table in TABLES:
                with self.database.connect() as connection:
                    found = connection.execute(f"SELECT * FROM {self.schema}.{table}".encode()).fetchall()
                source = Counter(tuple(str(value) for value in row) for row in found)
                replica = Counter({tuple(str(v) for v in row): n for row, n in self.history.rows[table].items() if n})
                assert replica == source, table
        finally:
            self._close()

    def _may_plan(self) -> bool:
        """A snapshot is exported only once older transactions have ended, and these wait for us."""
        return not self.busy or self.capture.connector._initial._export is not None or self._streams()

    def _streams(self) -> bool:
        return self.capture.offset["phase"] == "stream"

    def _step(self) -> bool:
        start = self.capture.offset
        end = self.capture.connector.head(start, None, None)
        if end != start:
            self._commit(start, end)
        return end != start

    def _commit(self, start: Offset, end: Offset) -> None:
        splits = self.capture.connector.plan(start, end)
        places = [place for name in ("place", "undo") if (place := start.get("reading", {}).get(name))]
        unread = {table.rpartition(".")[2] for place in places for table in place["left"]}
        for change in rows(chunk for split in splits for chunk in self.capture.connector.read(split)):
            self.history.apply(change, unread)
        self.capture.offset = end

    def _restart(self) -> None:
        self.capture.close()
        self.capture.connector = PostgresConnector(self.capture.config)

    def _close(self) -> None:
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


@pytest.fixture
def machine(database: Database) -> type[Resuming]:
    return type("ResumingHere", (Resuming,), {"database": database})


@pytest.mark.timeout(0)
def test_history_is_valid(machine: type[Resuming]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            phases=[Phase.generate],
        ),
    )
