"""The moment of a snapshot: how its rows and the log of change tables meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.position import LsnPosition, behind
from tailrace.connectors.change_tables.schema_changes import initial_batches
from tailrace.connectors.change_tables.source_rows import source_rows
from tailrace.connectors.change_tables.tables import LastChange
from tailrace.connectors.sql_tables.tables import Described
from tailrace.model.change import ChangeBatch
from tailrace.model.table import TableId
from tailrace.override import override


@dataclass(frozen=True)
class Moment:
    """Implements Moment (sql_tables/rows.py): where the log begins after it, the server's time, and its name.

    A snapshot on demand has the `last` change of each database, too.
    """

    position: LsnPosition
    ts_us: int
    name: str
    last: tuple[tuple[str, LastChange], ...] = ()

    @override
    def __str__(self) -> str:
        return self.name

    def begins(self, table: TableId) -> str:
        """Where changes of a table begin: behind the last commit that was captured in its database."""
        return behind(self.position.lsn(table.database))

    def source(self, dialect: Dialect, table: TableId, count: int) -> pa.StructArray:
        """The `source` blocks of so many rows: that of the last change in the table's database."""
        last = dict(self.last).get(table.database, LastChange(self.position.lsn(table.database)))
        return source_rows(dialect.source_type, last, count)

    def introduced(self, dialect: Dialect, structures: Sequence[Described]) -> list[ChangeBatch]:
        """The events that describe tables before their rows are read."""
        return initial_batches(dialect, structures, dict(self.position.lsns), last=dict(self.last))
