"""Implements Dialect (connectors/change_tables/dialect.py) for Db2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.position import LsnPosition, behind
from tailrace.connectors.change_tables.tables import Instance, LastChange
from tailrace.connectors.db2 import failures, statements
from tailrace.connectors.db2.catalog import Catalog, statistics
from tailrace.connectors.db2.client import Connection, Server, connect
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.db2.log.end import captured_us, intervals, log_end, wait_for_capture
from tailrace.connectors.db2.log.last import last_change
from tailrace.connectors.db2.log.reader import RegisteredTable, change_table
from tailrace.connectors.db2.options import SNAPSHOT_ISOLATION_MODE, SNAPSHOT_LOCK_TIMEOUT_MS, SNAPSHOT_LOCKING_MODE
from tailrace.connectors.db2.position import SOURCE_TYPE, literal_of
from tailrace.connectors.db2.types.values import CHARACTERS, Db2Type
from tailrace.connectors.db2.user_text import GRAMMAR
from tailrace.model.table import TableId
from tailrace.override import override

_LEVELS = {"read_uncommitted": "UR", "read_committed": "CS", "repeatable_read": "RS", "exclusive": "RS"}
_WHOLE = {"SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_EXACT, _FLOATS = (*_WHOLE, "DECIMAL", "NUMERIC", "DECFLOAT"), ("REAL", "DOUBLE", "FLOAT")
_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_MOST_SECONDS = 32767  # of CURRENT LOCK TIMEOUT
_ROW_BYTES = 100  # where the catalog has no statistics


class Db2Dialect(Dialect):
    """Implements Dialect."""

    source_type = SOURCE_TYPE
    failures = FAILURES
    count = "COUNT_BIG(*)"
    switched_database = ""
    structures_by_name = False
    sends_captured_only = True
    nulls_first = False
    grammar = GRAMMAR
    lsn = "cdc_data.IBMSNAP_COMMITSEQ"
    balance = "CASE cdc_data.IBMSNAP_OPERATION WHEN 'I' THEN 1 WHEN 'D' THEN -1 ELSE 0 END"

    @override
    def is_missing(self, error: BaseException) -> bool:
        return failures.is_missing(error)

    @override
    def connect(self, config: Config, application: str, database: str) -> Connection:
        return connect(config, application)

    @override
    def server(self, config: Config, application: str = "tailrace planner") -> Server:
        return Server(config, application)

    @override
    def catalog(self, connection: Any, config: Config) -> Catalog:
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
        return f"{statement} FETCH FIRST {rows} ROWS ONLY"

    @override
    def one_row(self, expressions: Sequence[str]) -> str:
        return f"SELECT {', '.join(expressions)} FROM SYSIBM.SYSDUMMY1"

    @override
    def as_text(self, expression: str, size: int | None = None) -> str:
        """The columns of a signal table are text, of at most 32 kB."""
        return expression

    @override
    def key_text(self, column: str, kind: Db2Type) -> str:
        """24:00:00, and more digits of fraction than Python has, are kept by texts alone."""
        return f"VARCHAR({column})" if kind.name in ("TIME", "TIMESTAMP") else column

    @override
    def texts(self, values: Sequence[Any]) -> tuple[str | None, ...]:
        return tuple(None if value is None else _text(value) for value in values)

    @override
    def octets(self, value: bytes) -> str:
        return value.hex()

    @override
    def literal(self, kind: Db2Type, value: str) -> str:
        """Text that is none of the type makes the server refuse the statement."""
        if kind.is_binary or kind.name in ("BINARY", "VARBINARY"):
            return f"CAST(X'{value}' AS {kind.declared})" if re.fullmatch(r"[0-9a-fA-F]*", value) else "X'?'"
        if kind.name in _EXACT and _NUMBER.fullmatch(value):
            return value
        if kind.name in _FLOATS and _NUMBER.fullmatch(value):
            return value if "e" in value.lower() else f"{value}E0"
        if kind.name == "BOOLEAN":
            return "TRUE" if value.lower() in ("1", "true") else "FALSE"
        if kind.name in CHARACTERS:
            return statements.text(value)
        return f"CAST({statements.text(value)} AS {kind.declared})"

    @override
    def tried(self, kind: Db2Type, value: str) -> str:
        """Db2 has no such conversion, so it is looked at here.

        A number by itself has the type of its digits, and the driver gives those of a column in several types.
        """
        if not _is_of(kind, value):
            return f"CAST(NULL AS {kind.declared})"
        literal = self.literal(kind, value)
        return f"CAST({literal} AS {kind.declared})" if kind.name in (*_EXACT, *_FLOATS) else literal

    @override
    def hint(self, config: Config) -> str:
        return ""

    @override
    def size_of(self, connection: Any, table: TableId, number: int) -> tuple[int, int]:
        """By the statistics of RUNSTATS, else rows are counted."""
        rows, width = statistics(connection, table, is_zos=connection.is_zos)
        if rows < 0:
            rows = int(connection.value(f"SELECT {self.count} FROM {self.table(table)}"))
        return rows * (width if width > 0 else _ROW_BYTES), rows

    @override
    def now_us(self, connection: Any) -> int:
        now: datetime = connection.value("SELECT CURRENT TIMESTAMP - CURRENT TIMEZONE FROM SYSIBM.SYSDUMMY1")
        return int(now.replace(tzinfo=timezone.utc).timestamp()) * 1_000_000 + now.microsecond

    @contextmanager
    @override
    def transaction(self, connection: Any, config: Config) -> Iterator[None]:
        with connection.transaction():
            connection.isolate(_LEVELS[config[SNAPSHOT_ISOLATION_MODE]])
            yield

    @override
    def locked(self, connection: Any, config: Config, table: TableId) -> str | None:
        """With the level `exclusive`, until the capture program has come past the lock."""
        if config[SNAPSHOT_ISOLATION_MODE] != "exclusive" or config[SNAPSHOT_LOCKING_MODE] == "none":
            return None
        limit = config[SNAPSHOT_LOCK_TIMEOUT_MS]
        # In whole seconds; the register is the connection's, and outlives its transactions.
        connection.run(f"SET CURRENT LOCK TIMEOUT {-1 if limit < 0 else min(-(-limit // 1000), _MOST_SECONDS)}")
        try:
            connection.run(f"LOCK TABLE {self.table(table)} IN EXCLUSIVE MODE")
        finally:
            with suppress(FAILURES.driver_error):
                connection.run("SET CURRENT LOCK TIMEOUT NULL")
        if not wait_for_capture(connection, config, 2 * intervals(connection, config)):
            return None
        return behind(log_end(connection, config).lsn(config[DATABASE_DBNAME]))

    @override
    def parse(self, connection: Any, query: str) -> None:
        connection.prepare(query)

    @override
    def undone(self, connection: Any) -> AbstractContextManager[None]:
        """A text that ends a transaction is a statement, and Db2 takes one at a time."""
        transaction: AbstractContextManager[None] = connection.transaction()
        return transaction

    @override
    def log_end(self, connection: Any, config: Config) -> LsnPosition:
        return log_end(connection, config)

    @override
    def captured_us(self, connection: Any, config: Config) -> int | None:
        return captured_us(connection, config)

    @override
    def wait_for_log(self, connection: Any, config: Config) -> None:
        wait_for_capture(connection, config, 2 * intervals(connection, config))

    @override
    def follows(self, connection: Any, database: str, lsn: str, other: str) -> bool:
        """Change tables do not tell where they begin."""
        return False

    @override
    def last_change(self, connection: Any, instances: Sequence[Instance], until: str) -> LastChange | None:
        return last_change(connection, instances, until)

    @override
    def change_table(self, connection: Any, config: Config, instance: Instance) -> RegisteredTable | None:
        return change_table(Catalog(connection, config), config, instance)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    return value.isoformat() if isinstance(value, date | time) else str(value)


_READERS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("DECIMAL", "NUMERIC", "DECFLOAT"), Decimal),
    **dict.fromkeys(_FLOATS, float),
    "DATE": date.fromisoformat,
    "TIME": lambda value: _matching(_CLOCK, value),
    "TIMESTAMP": lambda value: _matching(rf"\d{{4}}-\d\d-\d\d[-T ]{_CLOCK}(\.\d{{1,12}})?", value),
}
_CLOCK = r"\d\d[.:]\d\d[.:]\d\d"


def _matching(form: str, value: str) -> str:
    if not re.fullmatch(form, value, re.ASCII):
        raise ValueError(value)
    return value


def _is_of(kind: Db2Type, value: str) -> bool:
    """Whether a text is a value of the type."""
    try:
        if kind.name in _WHOLE:
            return -(1 << _WHOLE[kind.name] - 1) <= int(value) < 1 << _WHOLE[kind.name] - 1
        if kind.name in ("DECIMAL", "NUMERIC"):
            return abs(Decimal(value)) < Decimal(10) ** (kind.bytes - kind.scale)
        if kind.is_binary or kind.name in ("BINARY", "VARBINARY"):
            return len(bytes.fromhex(value)) <= kind.bytes
        _READERS.get(kind.name, str)(value)
    except (ValueError, ArithmeticError):
        return False
    return True


DIALECT = Db2Dialect()
