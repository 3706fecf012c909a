"""SQL Server in the conformance suite, by the stand-in of the project's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace.override import override
from tests.conformance import hostile_sql
from tests.conformance.subject import (
    DECIDED_ONCE,
    KEY,
    NO_PRIVILEGE,
    NOTE,
    OF_BLOCKING_SIGNALS,
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
from tests.servers.sqlserver.server import SqlServer

PASSWORD = f"{SECRET}-Right-1"
LOGIN, POOR = "conformance", "poor"
ENABLE = "EXEC sys.sp_cdc_enable_table @source_schema = 'dbo', @source_name = '{}', @role_name = NULL"


class SqlServerSource(Source):
    """A database with change data capture, in which every table is captured."""

    signals = "signals"

    def __init__(self, server: SqlServer, name: str) -> None:
        self.server, self.name = server, name
        self._writers = threading.local()
        self._opened: list[Any] = []
        self._versions: dict[str, int] = {}
        server.execute(f"CREATE DATABASE {name}")
        self.run("EXEC sys.sp_cdc_enable_db")
        self.run("CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))")
        self._capture("signals")
        self.run("EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 0")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements in one transaction; the rows of the last one."""
        if not hasattr(self._writers, "connection"):
            self._writers.connection = self.server.connect(self.name)
            self._opened.append(self._writers.connection)
        with self._writers.connection.cursor() as cursor:
            if len(statements) > 1:
                cursor.execute("BEGIN TRANSACTION")
            for statement in statements:
                cursor.execute(statement)
            found = cursor.fetchall() if cursor.description else []
            if len(statements) > 1:
                cursor.execute("COMMIT")
            return list(found)

    def close(self) -> None:
        """Close the connections, and remove the database."""
        for connection in self._opened:
            connection.close()
        self.server.drop(self.name)

    @override
    def properties(self, pipeline: str) -> dict[str, str]:
        return {
            "database.hostname": self.server.host,
            "database.port": str(self.server.port),
            "database.user": LOGIN,
            "database.password": PASSWORD,
            "database.names": self.name,
            # Tables without a key are exact in a replica only if nobody writes while they are read.
            "snapshot.isolation.mode": "exclusive",
        }

    @override
    def id(self, table: str) -> TableId:
        return TableId(self.name, "dbo", table, DATABASE_SCHEMA_TABLE)

    @override
    def create(self, *tables: str, has_key: bool = True) -> None:
        for table in tables:
            key = "NOT NULL PRIMARY KEY" if has_key else ""
            self.run(f"CREATE TABLE [{table}] ([{KEY}] int {key}, [{VALUE}] int, [{NOTE}] nvarchar(400))")
            self._capture(table)

    @override
    def commit(self, *changes: Change) -> None:
        self.run(*map(_statement, changes))

    @override
    def roll_back(self, *changes: Change) -> None:
        self.run("BEGIN TRANSACTION; " + "; ".join(map(_statement, changes)) + "; ROLLBACK")

    @override
    def truncate(self, table: str) -> None:
        """Not allowed for captured tables."""
        raise NotImplementedError

    @override
    def add_column(self, table: str, name: str) -> None:
        """With a new capture instance, as an operator makes it."""
        self._versions[table] = self._versions.get(table, 1) + 1
        self.run(f"ALTER TABLE [{table}] ADD [{name}] int")
        self.run(f"{ENABLE.format(table)}, @capture_instance = 'dbo_{table}_v{self._versions[table]}'")

    @override
    def move_key(self, table: str) -> None:
        ((key,),) = self.run(f"SELECT name FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('dbo.{table}')")
        self.run(f"ALTER TABLE [{table}] DROP CONSTRAINT [{key}]")
        self.run(f"ALTER TABLE [{table}] ALTER COLUMN [{VALUE}] int NOT NULL")
        self.run(f"ALTER TABLE [{table}] ADD PRIMARY KEY ([{VALUE}])")

    @override
    def signal(self, id_: str, kind: str, data: str) -> None:
        self.run(f"INSERT INTO signals VALUES ({_value(id_)}, {_value(kind)}, {_value(data)})")

    @override
    def settle(self) -> None:
        """One scan of the capture job."""
        self.server.capture.scan(int(self.server.lookup(f"SELECT ms.db_id('{self.name}')") or 0))

    @override
    def rest(self) -> None:
        super().rest()
        self.server.capture.write_idle_row(int(self.server.lookup(f"SELECT ms.db_id('{self.name}')") or 0))

    @override
    def clear_signals(self) -> None:
        self.run("DELETE FROM signals")

    @override
    def hostile(self, kind: str, table: str, victim: str) -> list[str]:
        delete = f"DELETE FROM [{victim}]"
        if kind == "incremental":
            return hostile_sql.conditions(delete) + hostile_sql.odd_conditions(delete)
        return hostile_sql.selects(table, delete) + hostile_sql.odd_selects(table, delete)

    @override
    def harmless(self, kind: str, table: str, key: int) -> str:
        condition = f'"{KEY}" = {key}'
        return condition if kind == "incremental" else f"SELECT * FROM {table} WHERE {condition}"

    @override
    def rows(self, table: str) -> list[Row]:
        names = [row[0] for row in self.run(f"SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('dbo.{table}')")]
        listed = ", ".join(f"[{name}]" for name in names)
        return [dict(zip(names, row, strict=True)) for row in self.run(f"SELECT {listed} FROM [{table}]")]

    @override
    def lose_position(self, pipeline: str) -> None:
        """Capture is disabled and enabled again."""
        for (instance,) in self.run("SELECT capture_instance FROM cdc.change_tables"):
            table = instance.removeprefix("dbo_").partition("_v")[0]
            self.run(
                "EXEC sys.sp_cdc_disable_table @source_schema = 'dbo', "
                f"@source_name = '{table}', @capture_instance = '{instance}'"
            )
            self._capture(table)

    @contextmanager
    @override
    def fault(self, kind: str) -> Iterator[dict[str, str]]:
        if kind == WRONG_PASSWORD:
            yield {"database.password": f"{SECRET}-Wrong-1"}
        elif kind == UNREACHABLE:
            yield {"database.port": "1"}
        else:
            assert kind == NO_PRIVILEGE
            self.run(f"CREATE USER {POOR} FOR LOGIN {POOR}")
            yield {"database.user": POOR}

    @override
    def url(self) -> tuple[str, dict[str, str]]:
        return f"mssql://{LOGIN}@{self.server.host}:{self.server.port}/{self.name}", {"MSSQL_PASSWORD": PASSWORD}

    def _capture(self, table: str) -> None:
        self.run(ENABLE.format(table))


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    return "N'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _statement(change: Change) -> str:
    """A change as SQL."""
    if isinstance(change, Insert):
        names, values = ", ".join(f"[{name}]" for name in change.row), ", ".join(map(_value, change.row.values()))
        return f"INSERT INTO [{change.table}] ({names}) VALUES ({values})"
    if isinstance(change, Delete):
        return f"DELETE FROM [{change.table}] WHERE [{KEY}] = {change.key}"
    assert isinstance(change, Update)
    values = ", ".join(f"[{name}] = {_value(value)}" for name, value in change.values.items())
    return f"UPDATE [{change.table}] SET {values} WHERE [{KEY}] = {change.key}"


class SqlServerSubject(Subject):
    """The stand-in for SQL Server."""

    connector = "sqlserver"
    is_killed = False  # make crash kills its pipelines
    is_altered_under_load = True
    cannot: ClassVar[Mapping[str, str]] = {
        "a_truncate_is_an_event": "TRUNCATE is not allowed for tables with a capture instance",
        "a_truncate_empties_a_replica": "TRUNCATE is not allowed for tables with a capture instance",
        "events_of_a_new_key_have_the_other_key_in_a_header": "the log has a deleted and an inserted row",
        "status_and_drop_know_what_a_pipeline_has_created": "a pipeline creates nothing on the server",
    }

    long = (
        DECIDED_ONCE
        | OF_BLOCKING_SIGNALS
        | {
            *("a_plug_in_that_is_not_there_is_named", "a_stream_has_rows_in_each_shape"),
            *("a_table_is_added_under_load", "kafka_has_each_event_once", "a_table_is_removed_under_load"),
            *("a_table_is_added_by_a_blocking_snapshot", "reconcile_finds_and_repairs_wrong_rows"),
            *("a_snapshot_under_load_leaves_a_replica_equal", "a_snapshot_of_several_batches_resumes_where_it_was"),
            *("a_pipeline_begins_with_more_signals_than_are_read", "more_signals_than_are_read_never_stop_a_pipeline"),
            *("a_replica_that_was_deleted_is_read_again", "the_checkpoint_of_another_source_is_an_error"),
        }
    )

    @override
    def start(self, request: pytest.FixtureRequest) -> None:
        self.server: SqlServer = request.getfixturevalue("sqlserver")

    @contextmanager
    @override
    def source(self) -> Iterator[Source]:
        source = SqlServerSource(self.server, f"c{uuid4().hex[:8]}")
        try:
            yield source
        finally:
            source.close()
