"""The protocol Dialect: what the change-table algorithms need from a database in addition to SqlDialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.change_tables.change_table import ChangeTable
from tailrace.connectors.change_tables.changes import ORDER_STEP
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.source_rows import source_rows
from tailrace.connectors.change_tables.tables import Catalog, Instance, LastChange
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.model.table import TableId
from tailrace.override import override


class Dialect(SqlDialect, Protocol):
    """One database with change tables: what its log needs beside what reading its tables needs."""

    source_type: pa.StructType
    """Of the fields change_lsn, commit_lsn and event_serial_no."""

    order_step: int = ORDER_STEP

    switched_database: str | None
    """What the reference engine calls the database in changes of structure of the log; None: by its name."""

    lsn: str
    """The LSN of a row's commit, in a change table under the alias cdc_data."""

    balance: str
    """By how many rows a row of a change table under that alias has changed its table: 1, -1 or 0."""

    def is_missing(self, error: BaseException) -> bool:
        """Whether an error of the driver says that a table of the statement does not exist."""
        return False

    @override
    def catalog(self, connection: Any, config: Config) -> Catalog: ...

    def literal_of(self, lsn: str) -> str:
        """A literal of an LSN; of the lowest there is for the empty text."""

    @override
    def log_end(self, connection: Any, config: Config) -> LsnPosition:
        """How far the log of each database is captured."""

    def captured_us(self, connection: Any, config: Config) -> int | None:
        """The time up to which all commits are captured, in microseconds since 1970 UTC; None where it is not known.

        It is asked for before `log_end`, and is that of the database which is furthest behind.
        """

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

    @override
    def source_at(
        self, connection: Any, config: Config, table: TableId, end: LsnPosition, count: int
    ) -> pa.StructArray:
        """That of the last change that was captured."""
        lsn = end.lsn(table.database)
        last = self.last_change(connection, self.catalog(connection, config).instances(table.database), lsn)
        return source_rows(self.source_type, last or LastChange(lsn), count)

    def change_table(self, connection: Any, config: Config, instance: Instance) -> ChangeTable | None:
        """How rows of a change table are read; None if none of its columns is captured. Raises InstanceGone."""
