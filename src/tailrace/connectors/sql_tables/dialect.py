"""The protocol SqlDialect: what reading relational tables needs from a database (connections, catalog, SQL)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.ports import Position
from tailrace.connectors.snapshot_ports import Failures
from tailrace.connectors.sql_tables.tables import Connection, Row, Server, SqlCatalog
from tailrace.connectors.user_text import Grammar
from tailrace.model.table import TableId


class SqlDialect(Protocol):
    """One database. It has no state: there is one object of each."""

    failures: Failures

    order_step: int
    """How far apart the places of two changes are, in the order of a batch."""

    count: str
    """The aggregate that counts more than 2^31 rows."""

    structures_by_name: bool
    """Whether a first snapshot begins with the structures of tables by name, not in the order of its reads."""

    sends_captured_only: bool
    """Whether a first snapshot sends the structures of captured tables only."""

    nulls_first: bool
    """Where ORDER BY has nulls."""

    grammar: Grammar
    """What the SQL of a signal may have."""

    def connect(self, config: Config, application: str, database: str) -> Connection:
        """A new connection to a database; without a name to that of the configuration."""

    def server(self, config: Config, application: str = "tailrace planner") -> Server:
        """A server with a connection of its own."""

    def catalog(self, connection: Any, config: Config) -> SqlCatalog:
        """The catalog over a connection."""

    def name(self, text: str) -> str:
        """A name in quotes."""

    def table(self, id_: TableId) -> str:
        """A table's full name in quotes."""

    def text(self, value: str) -> str:
        """A literal of Unicode characters."""

    def limited(self, statement: str, rows: int) -> str:
        """A statement that begins with SELECT, limited to so many rows."""

    def derived(self, select: str) -> str:
        """A user's SELECT as a table in FROM, without its name."""
        return f"({select})"

    def one_row(self, expressions: Sequence[str]) -> str:
        """A SELECT of values that are in no table."""

    def as_text(self, expression: str, size: int | None = None) -> str:
        """An expression as text, cut to so many characters."""

    def key_text(self, column: str, kind: Any) -> str:
        """A column of a key, quoted, in a form that `texts` takes."""

    def texts(self, values: Sequence[Any]) -> tuple[str | None, ...]:
        """What `key_text` gives as texts that `literal` reads."""

    def octets(self, value: bytes) -> str:
        """Bytes of a key as a text that `literal` reads."""
        return f"0x{value.hex()}"

    def literal(self, kind: Any, value: str) -> str:
        """A literal in a key column's type, so that the server compares by its rules."""

    def tried(self, kind: Any, value: str) -> str:
        """A literal in a key column's type, null where the text is none."""

    def hint(self, config: Config) -> str:
        """What stands behind the statement of a chunk."""

    def size_of(self, connection: Any, table: TableId, number: int) -> tuple[int, int]:
        """About the bytes and rows of a table; 0 where they are not known."""

    def now_us(self, connection: Any) -> int:
        """The server's clock, in microseconds since 1970 UTC."""

    def transaction(self, connection: Any, config: Config) -> AbstractContextManager[None]:
        """A transaction of the isolation level that snapshot.isolation.mode says; it ends with the block."""

    def locked(self, connection: Any, config: Config, table: TableId) -> str | None:
        """Where the level says so, keep writers away until the transaction ends; where the log then goes on."""

    def rows_soon(self, connection: Any, statement: str) -> list[Row]:
        """All rows of a statement. An open transaction that has written some of them is not waited for long."""
        rows: list[Row] = connection.rows(statement)
        return rows

    def parse(self, connection: Any, query: str) -> None:
        """Have the server parse a query, without running it. Raises the driver's errors."""

    def undone(self, connection: Any) -> AbstractContextManager[None]:
        """A transaction that is rolled back, for SQL of a signal. Raises SourceError if that has ended it."""

    def log_end(self, connection: Any, config: Config) -> Position:
        """Up to where changes can be read from the log."""

    def wait_for_log(self, connection: Any, config: Config) -> None:
        """Give whatever fills the log the time for what is committed by now."""

    def source_at(self, connection: Any, config: Config, table: TableId, end: Any, count: int) -> pa.StructArray:
        """The `source` of so many rows of a chunk of the table that reaches to `end`."""
