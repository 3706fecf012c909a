"""What `verify` makes and asks in SQL Server; the probes of capture instances are in verify_capture.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.probe import Answer, Expectation, Probe, Undo, Wrong
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.sql_bench import BLOCKED_TABLES, SqlBench
from tailrace.connectors.sqlserver.admin import SqlServerAdmin
from tailrace.connectors.sqlserver.client import connect
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.connectors.sqlserver.verify_capture import DUMPED, LIFE, capture_probes
from tailrace.connectors.sqlserver.verify_types import KEYS, TYPES
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

FAILURES = DIALECT.failures
_PROPERTIES = (
    *("ProductVersion", "ProductLevel", "ProductUpdateLevel", "Edition", "EngineEdition", "Collation"),
    *("IsHadrEnabled", "IsClustered", "IsIntegratedSecurityOnly", "PathSeparator"),
)
_DATABASE = (
    *("compatibility_level", "collation_name", "is_read_committed_snapshot_on", "snapshot_isolation_state"),
    *("is_cdc_enabled", "recovery_model_desc", "containment", "is_query_store_on", "delayed_durability_desc"),
    *("is_encrypted", "is_auto_close_on", "is_accelerated_database_recovery_on"),
)
_SESSION = ("@@LANGUAGE", "@@TEXTSIZE", "@@OPTIONS", "@@LOCK_TIMEOUT", "@@MAX_PRECISION", "@@DATEFIRST")
_STABLE = {
    "service_broker_guid": "SELECT CASE WHEN service_broker_guid IS NULL THEN 0 ELSE 1 END FROM sys.databases "
    "WHERE database_id = DB_ID()",
    "recovery_fork_guid": "SELECT COUNT(recovery_fork_guid) FROM sys.database_recovery_status "
    "WHERE database_id = DB_ID()",
}
_VIEWS = {
    "sys.dm_server_services": "SELECT COUNT(*) FROM sys.dm_server_services",
    "msdb.dbo.cdc_jobs": "SELECT COUNT(*) FROM msdb.dbo.cdc_jobs",
    "sys.dm_cdc_log_scan_sessions": "SELECT COUNT(*) FROM sys.dm_cdc_log_scan_sessions",
    "sys.dm_cdc_errors": "SELECT COUNT(*) FROM sys.dm_cdc_errors",
    "sys.dm_db_log_stats": "SELECT COUNT(*) FROM sys.dm_db_log_stats(DB_ID())",
    "cdc.change_tables": "SELECT COUNT(*) FROM cdc.change_tables",
    "cdc.lsn_time_mapping": "SELECT TOP 1 1 FROM cdc.lsn_time_mapping",
    "sys.database_recovery_status": "SELECT COUNT(*) FROM sys.database_recovery_status",
}
_JOB = """
SELECT pollinginterval, maxtrans, maxscans, continuous FROM msdb.dbo.cdc_jobs
WHERE job_type = N'capture' AND database_id = DB_ID()
"""
# Numbers below 100,000, by their digits.
_PLACES = {"a": 1, "b": 10, "c": 100, "d": 1000, "e": 10000}
_NUMBER = " + ".join(f"{place}.n * {value}" for place, value in _PLACES.items())
_ZERO_TO_NINE = ", ".join(f"({digit})" for digit in range(10))
_DIGITS = " CROSS JOIN ".join(f"(VALUES {_ZERO_TO_NINE}) AS {place}(n)" for place in _PLACES)
_RIGHTS = ("CONTROL", "SELECT", "EXECUTE", "VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE", "VIEW DEFINITION")
_CAPTURES = "Nothing is captured before an administrator enables change data capture in the database."
_TOLD = "The connector tells a database by its name and a commit that it has read; these would tell more."


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
    own_tables = (*BLOCKED_TABLES, LIFE, DUMPED)

    @property
    def database(self) -> str:
        """The database's name."""
        return self.config.names("database.names")[0]

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

    def properties(self, *tables: str) -> Mapping[str, str]:
        """See Bench.properties."""
        return {
            **self.config.given,
            "table.include.list": ",".join(f"{self.schema}\\.{table}" for table in tables),
            "decimal.handling.mode": "string",
            "binary.handling.mode": "hex",
        }

    def signalled(self, table: str) -> str:
        """See Bench.signalled."""
        return f"{self.database}.{self.schema}.{table}"

    def image(self, written: Any) -> dict[str, Any] | None:
        """See Bench.image."""
        return None if written is None else dict(written)

    def release(self, *tables: str) -> None:
        """See Bench.release: a pipeline makes nothing."""

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

    def probes(self) -> Sequence[Probe]:
        """See Bench.probes."""
        settings = "Which server, database and session settings are these?"
        captures = (Expectation("is_cdc_enabled", (True, 1), _CAPTURES),)
        identity = "What tells this database from another one, and after a failover?"
        views = "Which views may the user read?"
        job = "How is the capture job set?"
        return [
            Probe("identity.server", settings, "Behaviour depends on it.", self._identity, captures, writes=False),
            Probe("identity.stable", identity, _TOLD, self._stable, writes=False),
            Probe("rights.views", views, "Checks need some of them.", self._views, _MAY, writes=False),
            Probe(
                "rights.permissions", "What may the user do?", "A pipeline needs SELECT.", self._rights, writes=False
            ),
            Probe("capture.job", job, "It bounds how soon a change can be read.", self._job, writes=False),
            *capture_probes(self),
            *super().probes(),
        ]

    def _identity(self) -> Answer:
        about = {
            each: self.known(f"SELECT CONVERT(nvarchar(128), SERVERPROPERTY({text(each)}))") for each in _PROPERTIES
        }
        about |= {
            each: self.known(f"SELECT {each} FROM sys.databases WHERE database_id = DB_ID()") for each in _DATABASE
        }
        about |= {each: self.known(f"SELECT {each}") for each in _SESSION}
        return Answer({"is_cdc_enabled": about["is_cdc_enabled"]}, about)

    def _stable(self) -> Answer:
        return Answer(about={each: self.known(query) for each, query in _STABLE.items()})

    def _views(self) -> Answer:
        told = {each: self.known(query) for each, query in _VIEWS.items()}
        about = {each: found if str(found).startswith("code") else "readable" for each, found in told.items()}
        # Only the form of an LSN: where the server writes letters in upper case, comparisons of texts are wrong.
        end = str(self.known("SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())"))
        form = (
            end if end.startswith("code") else re.sub(r"[A-F]+", "A", re.sub(r"[a-f]+", "a", re.sub(r"\d+", "0", end)))
        )
        return Answer({"cdc.change_tables": about["cdc.change_tables"]}, {**about, "log_end_lsn_form": form})

    def _rights(self) -> Answer:
        listed = ", ".join(map(text, _RIGHTS))
        query = f"SELECT permission_name FROM fn_my_permissions(NULL, N'DATABASE') WHERE permission_name IN ({listed})"
        return Answer(about={"permissions": sorted({str(row[0]) for row in self.main.rows(query)})})

    def _job(self) -> Answer:
        rows = self.main.rows(_JOB)
        names = ("pollinginterval", "maxtrans", "maxscans", "continuous")
        return Answer(about=dict(zip(names, rows[0], strict=True)) if rows else {"job": "none"})


_MAY = (Expectation("cdc.change_tables", ("readable",), "GRANT SELECT ON SCHEMA::cdc TO the user."),)


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
