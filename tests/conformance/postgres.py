"""PostgreSQL in the conformance suite."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from tailrace.model.table import TableId
from tailrace.override import override
from tailrace.testing.postgres import PostgresServer
from tests.conformance import hostile_sql
from tests.conformance.subject import (
    KEY,
    NO_PRIVILEGE,
    NOTE,
    SECRET,
    UNREACHABLE,
    VALUE,
    WRONG_PASSWORD,
    Change,
    Delete,
    Insert,
    Row,
    Source,
    Subject,
    Update,
)

PASSWORD = f"{SECRET}-right"
SIGNALS = "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
COLUMNS = sql.SQL("({0} int{3}, {1} int, {2} text)")


class PostgresSource(Source):
    """A database with a superuser of its own. Tables have REPLICA IDENTITY FULL, so that events have old rows."""

    signals = "signals"

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server, self.name, self.user = server, name, f"user_{name}"
        self._writers = threading.local()
        self._opened: list[psycopg.Connection[Row]] = []

    def connect(self) -> psycopg.Connection[Row]:
        """A connection whose transactions end with it."""
        return psycopg.connect(self.server.dsn(self.name), row_factory=dict_row)

    def execute(self, statement: str | sql.Composed) -> None:
        """Run one statement."""
        with self.connect() as connection:
            connection.execute(statement)

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._opened:
            connection.close()

    @override
    def properties(self, pipeline: str) -> dict[str, str]:
        return {
            **self.server.properties(self.name),
            "database.user": self.user,
            "database.password": PASSWORD,
            "slot.name": self._slot(pipeline),
            "publication.name": pipeline,
            "publication.autocreate.mode": "filtered",
        }

    @override
    def id(self, table: str) -> TableId:
        return TableId(self.name, "public", table)

    @override
    def create(self, *tables: str, has_key: bool = True) -> None:
        names = [sql.Identifier(name) for name in (KEY, VALUE, NOTE)]
        columns = COLUMNS.format(*names, sql.SQL(" PRIMARY KEY" if has_key else ""))
        for table in tables:
            self.execute(sql.SQL("CREATE TABLE {} ").format(sql.Identifier(table)) + columns)
            self.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(sql.Identifier(table)))

    @override
    def commit(self, *changes: Change) -> None:
        with self._writer().transaction():
            for change in changes:
                self._writer().execute(*_statement(change))

    @override
    def roll_back(self, *changes: Change) -> None:
        with self.connect() as connection:
            for change in changes:
                connection.execute(*_statement(change))
            connection.rollback()

    @override
    def truncate(self, table: str) -> None:
        self.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(table)))

    @override
    def add_column(self, table: str, name: str) -> None:
        self.execute(sql.SQL("ALTER TABLE {} ADD {} int").format(sql.Identifier(table), sql.Identifier(name)))

    @override
    def move_key(self, table: str) -> None:
        name, column = sql.Identifier(table), sql.Identifier(VALUE)
        self.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(name, sql.Identifier(f"{table}_pkey")))
        self.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({})").format(name, column))

    @override
    def signal(self, id_: str, kind: str, data: str) -> None:
        with self._writer().transaction():
            self._writer().execute("INSERT INTO signals VALUES (%s, %s, %s)", [id_, kind, data])

    @override
    def clear_signals(self) -> None:
        self.execute("DELETE FROM signals")

    @override
    def hostile(self, kind: str, table: str, victim: str) -> list[str]:
        delete = f"DELETE FROM {victim}"
        if kind == "incremental":
            return hostile_sql.conditions(delete)
        return hostile_sql.selects(table, delete)

    @override
    def harmless(self, kind: str, table: str, key: int) -> str:
        condition = f'"{KEY}" = {key}'
        return condition if kind == "incremental" else f"SELECT * FROM {table} WHERE {condition}"

    @override
    def rows(self, table: str) -> list[Row]:
        with self.connect() as connection:
            return connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))).fetchall()

    @override
    def lose_position(self, pipeline: str) -> None:
        """Who still reads is ended first."""
        slot, deadline = self._slot(pipeline), time.monotonic() + 120
        ends = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active"
        while True:
            try:
                with self.connect() as connection:
                    connection.execute(ends, [slot])
                    connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
                return
            except psycopg.errors.ObjectInUse:  # noqa: PERF203  # the loop is the retrying
                assert time.monotonic() < deadline, "the slot stays in use"
                time.sleep(0.05)

    @contextmanager
    @override
    def fault(self, kind: str) -> Iterator[dict[str, str]]:
        if kind == WRONG_PASSWORD:
            yield {"database.password": f"{SECRET}-wrong"}
        elif kind == UNREACHABLE:
            yield {"database.port": "1"}
        else:
            assert kind == NO_PRIVILEGE
            role = f"poor_{uuid4().hex[:8]}"
            self.server.create_role(role, PASSWORD)
            yield {"database.user": role}
            self.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))

    @override
    def url(self) -> tuple[str, dict[str, str]]:
        server = self.server
        return f"postgresql://{self.user}@{server.host}:{server.port}/{self.name}", {"PGPASSWORD": PASSWORD}

    def _writer(self) -> psycopg.Connection[Row]:
        """The connection of this thread, as many commits as a test makes would spend their time on logging in."""
        if not hasattr(self._writers, "connection"):
            self._writers.connection = self.connect()
            self._opened.append(self._writers.connection)
        connection: psycopg.Connection[Row] = self._writers.connection
        return connection

    def _slot(self, pipeline: str) -> str:
        return f"{pipeline}_{self.name}"[-63:]


def _statement(change: Change) -> tuple[sql.Composed, list[object]]:
    """A change as SQL."""
    table = sql.Identifier(change.table)
    if isinstance(change, Insert):
        names = sql.SQL(", ").join(map(sql.Identifier, change.row))
        places = sql.SQL(", ").join([sql.Placeholder()] * len(change.row))
        return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(table, names, places), [*change.row.values()]
    where = sql.SQL("WHERE {} = %s").format(sql.Identifier(KEY))
    if isinstance(change, Delete):
        return sql.SQL("DELETE FROM {} ").format(table) + where, [change.key]
    assert isinstance(change, Update)
    values = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in change.values)
    statement = sql.SQL("UPDATE {} SET {} ").format(table, values) + where
    return statement, [*change.values.values(), change.key]


class PostgresSubject(Subject):
    """PostgreSQL 18 on the server that all tests share; it has every behaviour."""

    connector = "postgres"

    # The tests of behaviours show these on PostgreSQL by default.
    long = frozenset(
        {
            *("a_table_is_added_under_load", "a_snapshot_under_load_leaves_a_replica_equal"),
            *("a_replica_that_was_deleted_is_read_again[items]", "more_signals_than_are_read_never_stop_a_pipeline"),
            *(
                f"{behaviour}[{mode}]"
                for behaviour in ("a_mode_reads_the_tables_at_its_first_start", "a_restart_resumes_as_its_mode_says")
                for mode in ("always", "configuration_based")
            ),
        }
    )

    @override
    def start(self, request: pytest.FixtureRequest) -> None:
        self.server: PostgresServer = request.getfixturevalue("postgres18")

    @contextmanager
    @override
    def source(self) -> Iterator[Source]:
        source = PostgresSource(self.server, f"c{uuid4().hex[:8]}")
        self.server.create_database(source.name)
        self.server.create_role(source.user, PASSWORD, "LOGIN SUPERUSER")
        source.execute(SIGNALS)
        try:
            yield source
        finally:
            source.close()
            self.server.drop_database(source.name)
