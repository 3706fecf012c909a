"""The tables and sessions that `verify` makes in SQL Server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_NAMES
from tailrace.connectors.finding import Finding
from tailrace.connectors.probe import ProbeObject, Wrong
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.sql_bench import Session, SqlBench
from tailrace.connectors.sqlserver.admin import SqlServerAdmin
from tailrace.connectors.sqlserver.client import connect
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.connectors.sqlserver.verify_types import KEYS, TYPES
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace.override import override

FAILURES = DIALECT.failures
# Numbers below 100,000, by their digits.
_PLACES = {"a": 1, "b": 10, "c": 100, "d": 1000, "e": 10000}
_NUMBER = " + ".join(f"{place}.n * {value}" for place, value in _PLACES.items())
_ZERO_TO_NINE = ", ".join(f"({digit})" for digit in range(10))
_DIGITS = " CROSS JOIN ".join(f"(VALUES {_ZERO_TO_NINE}) AS {place}(n)" for place in _PLACES)


class SqlServerBench(SqlBench):
    """Implements Bench."""

    failures = FAILURES
    types, keys = TYPES, KEYS
    has_moves, moves_as = True, ("d", "c")
    # Azure SQL Database captures every 20 seconds.
    deadline_s = 90.0
    row_type = "int NOT NULL PRIMARY KEY,int,nvarchar(100)"
    series = f"SELECT {{first}} + {_NUMBER} FROM {_DIGITS} WHERE {_NUMBER} < {{count}}"
    lock_codes, deadlock_codes, killed_codes = ("1222",), ("1205",), ("596", "20047", "20006", "20003", "20004")

    @property
    def database(self) -> str:
        """The database's name."""
        return self.config[DATABASE_NAMES][0]

    @override
    def session(self) -> SqlServerSession:
        return SqlServerSession(self.config)

    @override
    def table(self, name_: str) -> str:
        return f"{name(self.schema)}.{name(name_)}"

    @override
    def column(self, name_: str) -> str:
        return name(name_)

    @override
    def text(self, value: str) -> str:
        return text(value)

    @override
    def captured(self, *tables: str) -> None:
        ids = [TableId(self.database, self.schema, table, DATABASE_SCHEMA_TABLE) for table in tables]
        SqlServerAdmin(self.config).extend(ids)

    @override
    def limit_locks(self, session: Any, seconds: int) -> None:
        session.rows(f"SET LOCK_TIMEOUT {seconds * 1000}")

    @override
    def number(self, session: Any) -> str:
        return str(session.rows("SELECT @@SPID")[0][0])

    @override
    def kill(self, number: str) -> str:
        return f"KILL {number}"

    @override
    def readers_wait(self) -> bool:
        return not self.value("SELECT is_read_committed_snapshot_on FROM sys.databases WHERE database_id = DB_ID()")

    def value(self, query: str) -> Any:
        """The first column of the first row of a query, None without one."""
        rows = self.main.rows(query)
        return rows[0][0] if rows else None

    def answer_or_code(self, query: str) -> Any:
        """The same, or the code of the error, where a server does not have what is asked for or hides it."""
        try:
            answer = self.value(query)
        except FAILURES.driver_error as error:
            return f"code {self.code(error)}"
        return answer if isinstance(answer, int | str | None) else str(answer)

    @override
    def drivers(self) -> Mapping[str, str]:
        return {each: version(each) for each in ("pymssql", "mssql-python")}

    @override
    def code(self, error: BaseException) -> str:
        """The server's or the driver's number."""
        cause = driver_error_of(error)
        number = cause.args[0] if cause.args else None
        # The driver gives the number of an error of the login with its text.
        number = number[0] if isinstance(number, tuple) else number
        return str(number) if isinstance(number, int) else type(cause).__name__

    @override
    def connect(self, config: Config) -> None:
        connection = connect(config, "tailrace verify")
        connection.rows("SELECT 1")
        connection.close()

    @override
    def wrong(self) -> Sequence[Wrong]:
        nobody = {"database.user": "tailrace_verify_nobody", "database.password": "Nobody-0"}
        nowhere = {"database.names": "tailrace_verify_none"}
        # In this order: the driver keeps the number of an earlier connection's error.
        return (
            Wrong("closed_port", {"database.port": "1"}, ("20009", "20002"), is_retried=True),
            Wrong("unknown_database", nowhere, ("4060", "18456"), is_retried=False),
            Wrong("unknown_user", nobody, ("18456",), is_retried=False),
        )

    @override
    def obstacle(self) -> Finding | None:
        if self.value("SELECT is_cdc_enabled FROM sys.databases WHERE database_id = DB_ID()"):
            return None
        remedy = "take a database for trials, and run EXEC sys.sp_cdc_enable_db in it as a sysadmin"
        return Finding("capture", False, "change data capture is not enabled in the database", remedy)

    @override
    def exists(self) -> bool:
        return self.value(f"SELECT SCHEMA_ID({text(self.schema)})") is not None

    @override
    def signalled(self, table: str) -> str:
        return f"{self.database}.{self.schema}.{table}"

    @override
    def undo(self) -> Sequence[ProbeObject]:
        whole = f"DROP SCHEMA IF EXISTS {name(self.schema)}"
        drops = [ProbeObject("; ".join(self._dropping(table)), partial(self._drop, table)) for table in self.tables]
        return [*drops, ProbeObject(whole, lambda: self.run(whole))]

    def _dropping(self, table: str) -> tuple[str, str]:
        place = f"@source_schema = {text(self.schema)}, @source_name = {text(table)}"
        disabling = f"EXEC sys.sp_cdc_disable_table {place}, @capture_instance = N'all'"
        return disabling, f"DROP TABLE IF EXISTS {self.table(table)}"

    def _drop(self, table: str) -> None:
        disabling, dropping = self._dropping(table)
        if self.value(
            f"SELECT is_tracked_by_cdc FROM sys.tables WHERE object_id = OBJECT_ID({text(self.table(table))})"
        ):
            self.run(disabling)
        self.run(dropping)


class SqlServerSession(Session):
    """Implements Session."""

    def __init__(self, config: Config) -> None:
        self._connection = connect(config, "tailrace verify")

    @override
    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._connection.rows(statement)

    @override
    def together(self, *statements: str) -> None:
        self.begin()
        for statement in statements:
            self.rows(statement)
        self.rows("COMMIT")

    @override
    def begin(self) -> None:
        self.rows("BEGIN TRANSACTION")

    @override
    def rollback(self) -> None:
        self.rows("IF @@TRANCOUNT > 0 ROLLBACK")

    @override
    def close(self) -> None:
        self._connection.close()
