"""The tables and sessions that `verify` makes in SQL Server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_NAMES
from tailrace.connectors.finding import Finding
from tailrace.connectors.probe import Undo, Wrong
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.sql_bench import SqlBench
from tailrace.connectors.sqlserver.admin import SqlServerAdmin
from tailrace.connectors.sqlserver.client import connect
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.connectors.sqlserver.verify_types import KEYS, TYPES
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

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

    def session(self) -> SqlServerSession:
        """See SqlBench.session."""
        return SqlServerSession(self.config)

    def table(self, name_: str) -> str:
        """See SqlBench.table."""
        return f"{name(self.schema)}.{name(name_)}"

    def column(self, name_: str) -> str:
        """See SqlBench.column."""
        return name(name_)

    def text(self, value: str) -> str:
        """See SqlBench.text."""
        return text(value)

    def captured(self, *tables: str) -> None:
        """See SqlBench.captured."""
        ids = [TableId(self.database, self.schema, table, DATABASE_SCHEMA_TABLE) for table in tables]
        SqlServerAdmin(self.config).extend(ids)

    def limit_locks(self, session: Any, seconds: int) -> None:
        """See SqlBench.limit_locks."""
        session.rows(f"SET LOCK_TIMEOUT {seconds * 1000}")

    def number(self, session: Any) -> str:
        """See SqlBench.number."""
        return str(session.rows("SELECT @@SPID")[0][0])

    def kill(self, number: str) -> str:
        """See SqlBench.kill."""
        return f"KILL {number}"

    def readers_wait(self) -> bool:
        """See SqlBench.readers_wait."""
        return not self.value("SELECT is_read_committed_snapshot_on FROM sys.databases WHERE database_id = DB_ID()")

    def value(self, query: str) -> Any:
        """The first column of the first row of a query, None without one."""
        rows = self.main.rows(query)
        return rows[0][0] if rows else None

    def known(self, query: str) -> Any:
        """The same, or the code of the error, where a server does not have what is asked for or hides it."""
        try:
            found = self.value(query)
        except FAILURES.driver_error as error:
            return f"code {self.code(error)}"
        return found if isinstance(found, int | str | None) else str(found)

    def drivers(self) -> Mapping[str, str]:
        """See Bench.drivers."""
        return {each: version(each) for each in ("pymssql", "mssql-python")}

    def code(self, error: BaseException) -> str:
        """See Bench.code: the server's or the driver's number."""
        cause = driver_error_of(error)
        number = cause.args[0] if cause.args else None
        # The driver gives the number of an error of the login with its text.
        number = number[0] if isinstance(number, tuple) else number
        return str(number) if isinstance(number, int) else type(cause).__name__

    def connect(self, config: Config) -> None:
        """See Bench.connect."""
        connection = connect(config, "tailrace verify")
        connection.rows("SELECT 1")
        connection.close()

    def wrong(self) -> Sequence[Wrong]:
        """See Bench.wrong."""
        nobody = {"database.user": "tailrace_verify_nobody", "database.password": "Nobody-0"}
        nowhere = {"database.names": "tailrace_verify_none"}
        # In this order: the driver keeps the number of an earlier connection's error.
        return (
            Wrong("closed_port", {"database.port": "1"}, ("20009", "20002"), is_retried=True),
            Wrong("unknown_database", nowhere, ("4060", "18456"), is_retried=False),
            Wrong("unknown_user", nobody, ("18456",), is_retried=False),
        )

    def obstacle(self) -> Finding | None:
        """See Bench.obstacle."""
        if self.value("SELECT is_cdc_enabled FROM sys.databases WHERE database_id = DB_ID()"):
            return None
        remedy = "take a database for trials, and run EXEC sys.sp_cdc_enable_db in it as a sysadmin"
        return Finding("capture", False, "change data capture is not enabled in the database", remedy)

    def exists(self) -> bool:
        """See Bench.exists."""
        return self.value(f"SELECT SCHEMA_ID({text(self.schema)})") is not None

    def signalled(self, table: str) -> str:
        """See Bench.signalled."""
        return f"{self.database}.{self.schema}.{table}"

    def undo(self) -> Sequence[Undo]:
        """See Bench.undo."""
        whole = f"DROP SCHEMA IF EXISTS {name(self.schema)}"
        drops = [Undo("; ".join(self._dropping(table)), lambda table=table: self._drop(table)) for table in self.tables]  # type: ignore[misc]
        return [*drops, Undo(whole, lambda: self.run(whole))]

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


class SqlServerSession:
    """Implements Session."""

    def __init__(self, config: Config) -> None:
        self._connection = connect(config, "tailrace verify")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """See Session.rows."""
        return self._connection.rows(statement)

    def together(self, *statements: str) -> None:
        """See Session.together."""
        self.begin()
        for statement in statements:
            self.rows(statement)
        self.rows("COMMIT")

    def begin(self) -> None:
        """See Session.begin."""
        self.rows("BEGIN TRANSACTION")

    def rollback(self) -> None:
        """See Session.rollback."""
        self.rows("IF @@TRANCOUNT > 0 ROLLBACK")

    def close(self) -> None:
        """See Session.close."""
        self._connection.close()
