"""Implements Dialect (connectors/change_tables/dialect.py) for SQL Server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.position import LsnPosition, behind
from tailrace.connectors.change_tables.tables import Instance, LastChange
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.sql_tables.tables import Row
from tailrace.connectors.sqlserver import arrow_client, statements
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection, Server, is_read_only
from tailrace.connectors.sqlserver.failures import FAILURES, NO_OBJECT, number_of
from tailrace.connectors.sqlserver.filling import filled
from tailrace.connectors.sqlserver.log.capture import wait_for_capture
from tailrace.connectors.sqlserver.log.end import captured_us, commit, has_log_around, log_end
from tailrace.connectors.sqlserver.log.last import last_change
from tailrace.connectors.sqlserver.log.reader import InstanceTable, change_table
from tailrace.connectors.sqlserver.options import (
    INCREMENTAL_SNAPSHOT_OPTION_RECOMPILE,
    SNAPSHOT_ISOLATION_MODE,
    SNAPSHOT_LOCK_TIMEOUT_MS,
    SNAPSHOT_LOCKING_MODE,
)
from tailrace.connectors.sqlserver.position import SOURCE_TYPE, literal_of
from tailrace.connectors.sqlserver.types.times import moments
from tailrace.connectors.sqlserver.types.values import BINARIES, SqlType
from tailrace.connectors.sqlserver.user_text import GRAMMAR
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.override import override

_LEVELS = {"read_uncommitted": "READ UNCOMMITTED", "read_committed": "READ COMMITTED", "snapshot": "SNAPSHOT"}
_REPEATABLE = "REPEATABLE READ"
_STYLES = {"date": 23, "time": 121, "datetime": 121, "datetime2": 121, "smalldatetime": 121, "datetimeoffset": 121,
           "real": 3, "float": 3, "money": 2, "smallmoney": 2}  # fmt: skip
_READ_AS_THEY_ARE = ("real", "float", "money", "smallmoney")
_PAGE = 8192
# Unlike sys.dm_db_partition_stats these take no VIEW DATABASE STATE.
_SIZE = """
SELECT SUM(a.used_pages), SUM(CASE WHEN p.index_id < 2 AND a.type = 1 THEN p.rows ELSE 0 END)
FROM {db}.sys.partitions p
JOIN {db}.sys.allocation_units a ON a.container_id = CASE WHEN a.type = 2 THEN p.partition_id ELSE p.hobt_id END
WHERE p.object_id = {id}
"""
# How long the log waits for rows of the signal table whose transaction is open; they are read once that has ended.
_PATIENCE_MS = 1000


class SqlServerDialect(Dialect):
    """Implements Dialect."""

    source_type = SOURCE_TYPE
    failures = FAILURES
    count = "COUNT_BIG(*)"
    switched_database = None
    structures_by_name = True
    sends_captured_only = False
    nulls_first = True
    grammar = GRAMMAR
    lsn = "cdc_data.[__$start_lsn]"
    balance = "CASE cdc_data.[__$operation] WHEN 2 THEN 1 WHEN 1 THEN -1 ELSE 0 END"

    @override
    def is_missing(self, error: BaseException) -> bool:
        return number_of(error) == NO_OBJECT

    @override
    def connect(self, config: Config, application: str, database: str) -> Connection:
        return arrow_client.connect(config, application, database or None)

    @override
    def server(self, config: Config, application: str = "tailrace planner") -> Server:
        return Server(config, application)

    @override
    def catalog(self, connection: Connection, config: Config) -> Catalog:
        return Catalog(connection, config)

    @override
    def name(self, text: str) -> str:
        return statements.name(text)

    @override
    def table(self, id_: TableId) -> str:
        return statements.table(id_)

    @override
    def text(self, value: str) -> str:
        return statements.text(value)

    @override
    def literal_of(self, lsn: str) -> str:
        return literal_of(lsn)

    @override
    def limited(self, statement: str, rows: int) -> str:
        return f"SELECT TOP {rows}{statement.removeprefix('SELECT')}"

    @override
    def derived(self, select: str) -> str:
        return statements.derived(select)

    @override
    def one_row(self, expressions: Sequence[str]) -> str:
        return f"SELECT {', '.join(expressions)}"

    @override
    def as_text(self, expression: str, size: int | None = None) -> str:
        text = f"CONVERT(nvarchar(max), {expression})"
        return text if size is None else f"LEFT({text}, {size})"

    @override
    def key_text(self, column: str, kind: SqlType) -> str:
        if kind.name in BINARIES:
            return f"CONVERT(varchar(max), CAST({column} AS varbinary(max)), 1)"
        style = _STYLES.get(kind.name)
        return f"CONVERT(nvarchar(max), {column}{'' if style is None else f', {style}'})"

    @override
    def texts(self, values: Sequence[Any]) -> tuple[str | None, ...]:
        """The server has printed them."""
        return tuple(values)

    @override
    def literal(self, kind: SqlType, value: str) -> str:
        """A text gets the code page of its column here. By itself it would get that of the current database, in which
        what the page lacks becomes a question mark ("CAST and CONVERT": "the output expression has the same
        collation").
        """
        expression = statements.text(value)
        if kind.name in ("char", "varchar") and kind.collation is not None:
            expression = f"{expression} COLLATE {kind.collation}"
        declared = "varbinary(8)" if kind.name in ("timestamp", "rowversion") else kind.declared
        if kind.name in BINARIES:
            return f"CONVERT({declared}, {expression}, 1)"
        style = None if kind.name in _READ_AS_THEY_ARE else _STYLES.get(kind.name)
        return f"CONVERT({declared}, {expression}{'' if style is None else f', {style}'})"

    @override
    def tried(self, kind: SqlType, value: str) -> str:
        return f"TRY_{self.literal(kind, value)}"

    @override
    def hint(self, config: Config) -> str:
        return " OPTION(RECOMPILE)" if config[INCREMENTAL_SNAPSHOT_OPTION_RECOMPILE] else ""

    @override
    def size_of(self, connection: Connection, table: TableId, number: int) -> tuple[int, int]:
        """0 where the login may not see them."""
        rows = connection.rows(_SIZE.format(db=statements.name(table.database), id=number))
        return (int(rows[0][0] or 0) * _PAGE, int(rows[0][1] or 0)) if rows else (0, 0)

    @override
    def now_us(self, connection: Connection) -> int:
        now = connection.value("SELECT CONVERT(varchar(40), SYSDATETIMEOFFSET(), 121)")
        return int(moments(pa.array([now], pa.string()))[0].as_py())

    @contextmanager
    @override
    def transaction(self, connection: Connection, config: Config) -> Iterator[None]:
        mode = config[SNAPSHOT_ISOLATION_MODE]
        level = "SNAPSHOT" if is_read_only(config) else _LEVELS.get(mode, _REPEATABLE)
        connection.run(f"SET TRANSACTION ISOLATION LEVEL {level}", "BEGIN TRANSACTION")
        try:
            yield
        finally:
            # Of a connection that is cut the server ends the transaction itself.
            with suppress(FAILURES.driver_error):
                connection.run(
                    "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
                )

    @override
    def locked(self, connection: Connection, config: Config, table: TableId) -> str | None:
        """With the level `exclusive`."""
        if config[SNAPSHOT_ISOLATION_MODE] != "exclusive" or config[SNAPSHOT_LOCKING_MODE] == "none":
            return None
        if is_read_only(config):
            # A readable replica takes no locks: its rows are those of a moment, of which it does not tell the LSN.
            return None
        limit = config[SNAPSHOT_LOCK_TIMEOUT_MS]
        connection.run(
            f"SET LOCK_TIMEOUT {limit}",
            # With TOP 0 the server might not touch the table.
            f"SELECT TOP 1 1 AS one FROM {statements.table(table)} WITH (TABLOCK, HOLDLOCK)",
            "SET LOCK_TIMEOUT -1",
        )
        # LSNs are compared as texts, so that the case of digits matters.
        return behind(str(connection.value("SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())")).lower())

    @override
    def rows_soon(self, connection: Connection, statement: str) -> list[Row]:
        """Without row versions a reader waits for a writer's transaction to end."""
        connection.run(f"SET LOCK_TIMEOUT {_PATIENCE_MS}")
        try:
            return connection.rows(statement)
        finally:
            with suppress(FAILURES.driver_error):
                connection.run("SET LOCK_TIMEOUT -1")

    @override
    def parse(self, connection: Connection, query: str) -> None:
        """As a text, so that nothing of it runs whatever it is."""
        text = statements.text(query)
        errors = connection.rows(
            f"SELECT error_number, error_message FROM sys.dm_exec_describe_first_result_set({text}, NULL, 0)"
        )
        if not errors or errors[0][0] is not None:
            raise FAILURES.driver_error(*(errors[0] if errors else (0, "it is no query")))

    @contextmanager
    @override
    def undone(self, connection: Connection) -> Iterator[None]:
        connection.run("BEGIN TRANSACTION")
        try:
            yield
            if connection.value("SELECT @@TRANCOUNT") != 1:
                remedy = "see what else it has done, and who may send signals: docs/signals.md says what that means"
                raise SourceError("the SQL of a signal has ended its transaction, which no query does", remedy=remedy)
        finally:
            with suppress(FAILURES.driver_error):
                connection.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")

    @override
    def log_end(self, connection: Connection, config: Config) -> LsnPosition:
        return log_end(connection, config)

    @override
    def captured_us(self, connection: Connection, config: Config) -> int | None:
        return captured_us(connection, config)

    @override
    def wait_for_log(self, connection: Connection, config: Config) -> None:
        wait_for_capture(connection, Catalog(connection, config).databases())

    @override
    def follows(self, connection: Connection, database: str, lsn: str, other: str) -> bool:
        function = f"{statements.name(database)}.sys.fn_cdc_increment_lsn"
        next_ = connection.value(f"SELECT {function}({literal_of(lsn)})")
        return bool(next_ == connection.value(f"SELECT CONVERT(binary(10), {literal_of(other)})"))

    @override
    def commit(self, connection: Connection, database: str, lsn: str) -> str | None:
        """Its time and its transaction. Its row is in the database, and so on all of its nodes."""
        return commit(connection, database, lsn)

    @override
    def has_log_around(self, connection: Connection, database: str, lsn: str) -> bool:
        return has_log_around(connection, database, lsn)

    @override
    def is_behind(self, connection: Connection, database: str) -> bool:
        updates = f"CONVERT(nvarchar(60), DATABASEPROPERTYEX({statements.text(database)}, N'Updateability'))"
        return bool(connection.value(f"SELECT {updates}") == "READ_ONLY")

    @override
    def filled(
        self, connection: Connection, config: Config, instance: Instance, captured: CapturedTable
    ) -> CapturedTable:
        return filled(self, connection, Catalog(connection, config), instance, captured)

    @override
    def last_change(self, connection: Connection, instances: Sequence[Instance], until: str) -> LastChange | None:
        return last_change(connection, instances, until)

    @override
    def change_table(self, connection: Any, config: Config, instance: Instance) -> InstanceTable | None:
        return change_table(Catalog(connection, config), config, instance)


DIALECT = SqlServerDialect()
