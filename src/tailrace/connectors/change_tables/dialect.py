"""The protocol Dialect: what the change-table algorithms need from a database (connections, catalog, SQL, log ends)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.change_tables.change_table import ChangeTable
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.change_tables.tables import (
    Catalog,
    Connection,
    Instance,
    LastChange,
    Row,
    Server,
)
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.snapshot_ports import Failures
from tailrace.connectors.user_text import Grammar
from tailrace.model.table import TableId


class Dialect(Protocol):
    """One database. It has no state: there is one object of each."""

    source_type: pa.StructType
    """Of the fields change_lsn, commit_lsn and event_serial_no."""

    failures: Failures

    count: str
    """The aggregate that counts more than 2^31 rows."""

    switched_database: str | None
    """What the reference engine calls the database in changes of structure of the log; None: by its name."""

    structures_by_name: bool
    """Whether a first snapshot begins with the structures of tables by name, not in the order of its reads."""

    sends_captured_only: bool
    """Whether a first snapshot sends the structures of captured tables only."""

    nulls_first: bool
    """Where ORDER BY has nulls."""

    grammar: Grammar
    """What the SQL of a signal may have."""

    lsn: str
    """The LSN of a row's commit, in a change table under the alias cdc_data."""

    def is_missing(self, error: BaseException) -> bool:
        """Whether an error of the driver says that a table of the statement does not exist."""
        return False

    def connect(self, config: Config, application: str, database: str) -> Connection:
        """A new connection to a database; without a name to that of the configuration."""

    def server(self, config: Config, application: str = "tailrace planner") -> Server:
        """A server with a connection of its own."""

    def catalog(self, connection: Any, config: Config) -> Catalog:
        """The catalog over a connection."""

    def name(self, text: str) -> str:
        """A name in quotes."""

    def table(self, id_: TableId) -> str:
        """A table's full name in quotes."""

    def text(self, value: str) -> str:
        """A literal of Unicode characters."""

    def literal_of(self, lsn: str) -> str:
        """A literal of an LSN; of the lowest there is for the empty text."""

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
        """Where the level says so, keep writers away until the transaction ends; the end of the log then."""

    def rows_soon(self, connection: Any, statement: str) -> list[Row]:
        """All rows of a statement. An open transaction that has written some of them is not waited for long."""
        found: list[Row] = connection.rows(statement)
        return found

    def parse(self, connection: Any, query: str) -> None:
        """Have the server parse a query, without running it. Raises the driver's errors."""

    def undone(self, connection: Any) -> AbstractContextManager[None]:
        """A transaction that is rolled back, for SQL of a signal. Raises SourceError if that has ended it."""

    def log_end(self, connection: Any, config: Config) -> Reading:
        """How far the log of each database is captured."""

    def wait_for_log(self, connection: Any, config: Config) -> None:
        """Give the program that captures the time for what is committed by now."""

    def follows(self, connection: Any, database: str, lsn: str, other: str) -> bool:
        """Whether there can be no LSN between the two."""

    def commit(self, connection: Any, database: str, lsn: str) -> str | None:
        """What tells the commit at a position from one of another log that has the same position.

        None where nothing is known of it: there is no such commit, or the database keeps none.
        """
        return None

    def has_log_around(self, connection: Any, database: str, lsn: str) -> bool:
        """Whether commits before a position and behind it are kept, so that one that is not there was never made."""
        return False

    def is_behind(self, connection: Any, database: str) -> bool:
        """Whether the database is a readable replica, which gets its log later than the server that it follows."""
        return False

    def filled(self, connection: Any, config: Config, instance: Instance, captured: CapturedTable) -> CapturedTable:
        """The table of a change table whose new columns know what older rows have in them, where the database fills."""
        return captured

    def last_change(self, connection: Any, instances: Sequence[Instance], until: str) -> LastChange | None:
        """The last change of these change tables up to a commit, None if there is none."""

    def change_table(self, connection: Any, config: Config, instance: Instance) -> ChangeTable | None:
        """How rows of a change table are read; None if none of its columns is captured. Raises InstanceGone."""
