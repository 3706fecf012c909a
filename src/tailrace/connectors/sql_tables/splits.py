"""Cuts tables into splits by ranges of their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tailrace.config import Config
from tailrace.config.overrides import origin_of, overrides
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.refusals import refusals
from tailrace.connectors.snapshot_ports import Cuts
from tailrace.connectors.snapshots import PagingKey, SnapshotPlace
from tailrace.connectors.split_sizes import is_chunked, pieces
from tailrace.connectors.sql_tables.captured import CapturedTables
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.keys import KeyColumn, after, key_columns, order, printed
from tailrace.connectors.sql_tables.rows import Moment, Split
from tailrace.connectors.sql_tables.tables import Connection, Described
from tailrace.connectors.user_select import UserSelect
from tailrace.model.table import TableId
from tailrace.override import override


class SqlCuts(CapturedTables, Cuts):
    """Implements Cuts. Each database has a snapshot of its own, with a first and a last row.

    `moment` is what the rows of the splits share, `wanted` has the tables that a signal asks for, and their SELECTs.
    """

    def __init__(
        self,
        dialect: SqlDialect,
        connection: Connection,
        config: Config,
        moment: Moment,
        wanted: Mapping[str, str | None] | None,
    ) -> None:
        super().__init__(dialect, connection, config)
        self.is_chunked = is_chunked(config)
        self._moment, self._wanted = moment, wanted
        self._selects = overrides(config) if wanted is None else wanted

    @override
    def splits(self, table: TableId, resumed: SnapshotPlace | None) -> list[Split]:
        """A table without rows has one split."""
        # A SELECT of the configuration may be given for schema.table, too.
        select = self._selects.get(str(table), self._selects.get(table.filtered))
        return self._of_table(table, resumed) if select is None else [self._chosen(table, select)]

    def _chosen(self, table: TableId, select: str) -> Split:
        """The rows of a SELECT of the user's, with the columns of the table."""
        of_signal = self._wanted is not None
        origin = origin_of(str(table), of_signal=of_signal)
        described = self.described(table)
        with refusals(self.dialect.failures, table, origin):
            if of_signal:
                select = self.dialect.grammar.query(select)
                # By itself, where no parenthesis is open that it could close.
                self.dialect.parse(self.connection, select)
            select, captured = self._listed(select, described), self.catalog.capture(described)
            if captured is not None:
                self.catalog.guard(captured, self.numbers[table])
                select = self._as_table(captured, select, origin)
        return Split(self._moment, table, select=select)

    def _as_table(self, captured: CapturedTable, select: str, origin: str) -> str:
        dialect, table, connection = self.dialect, captured.schema.id, self.connection
        source = f"{dialect.derived(select)} AS chosen"
        names = connection.names(f"SELECT * FROM {source} WHERE 1 = 0")
        whole = self.catalog.described(table, self.numbers[table])
        types = {column.name: column.type.declared for column in whole.columns}
        columns = UserSelect(table, names, list(types), {column.name for column in captured.schema.columns}, origin)
        return columns.as_table(
            self.config,
            source,
            dialect.name,
            lambda name: f"CAST(NULL AS {types[name]})",
            lambda: bool(connection.rows(dialect.limited(f"SELECT 1 FROM {source}", 1))),
        )

    def _of_table(self, table: TableId, resumed: SnapshotPlace | None) -> list[Split]:
        described = self.described(table)
        captured = self.catalog.capture(described)
        if captured is not None:
            self.catalog.guard(captured, self.numbers[table])
        size, rows = self.size_of(table)
        key = key_columns(described, described.key)
        low = None if resumed is None else resumed.last
        bounds = self._bounds(table, key, pieces(self.config, str(table), size), rows, low)
        return [
            Split(
                self._moment,
                table,
                key=key,
                low=first,
                high=last,
                bytes=size // len(bounds),
                is_whole=len(bounds) == 1 and low is None,
                rows=_step(rows, len(bounds)) if low is None else 0,
            )
            for first, last in pairwise([*bounds, None])
        ]

    def _bounds(
        self, table: TableId, key: Sequence[KeyColumn], count: int, rows: int, low: PagingKey | None
    ) -> list[PagingKey | None]:
        """Where each of so many ranges begins: behind a key; None is the very beginning."""
        step = _step(rows, count)
        if not key or not step:
            return [low]
        columns = ", ".join(f"k{place}" for place in range(len(key)))
        where = "" if low is None else f" WHERE {after(self.dialect, key, low)}"
        numbered = (
            f"SELECT {printed(self.dialect, key)}, ROW_NUMBER() OVER (ORDER BY {order(self.dialect, key)}) AS place "
            f"FROM {self.dialect.table(table)}{where}"
        )
        # A remainder, which not all databases have an operator or the same function for.
        last = f"place - (place / {step}) * {step} = 0"
        statement = f"SELECT {columns} FROM ({numbered}) AS numbered WHERE {last} ORDER BY place"
        rows_of_sample = self.connection.rows(statement)
        return [low, *(self.dialect.texts(row) for row in rows_of_sample[: count - 1])]

    @override
    def has_rows(self, split: Split) -> bool:
        condition = f" WHERE {after(self.dialect, split.key, split.low)}" if split.low else ""
        table = self.dialect.table(split.table)
        if split.select is not None:
            table = f"{self.dialect.derived(split.select)} AS chosen"
        statement = f"SELECT 1 FROM {table}{condition}"
        return bool(self.connection.rows(self.dialect.limited(statement, 1)))

    @override
    def count(self, split: Split) -> int:
        return int(self.connection.value(f"SELECT {self.dialect.count} FROM {self.dialect.table(split.table)}"))

    def _listed(self, select: str, described: Described) -> str:
        """A user-supplied SELECT; a `*` in its list is replaced by the columns."""
        head, star, rest = select.partition("*")
        is_list = star and head.strip().upper() in ("SELECT", "SELECT ALL", "SELECT DISTINCT")
        columns = ", ".join(self.dialect.name(column.name) for column in described.columns)
        return f"{head}{columns}{rest}".rstrip().rstrip(";") if is_list else select.rstrip().rstrip(";")


def _step(rows: int, ranges: int) -> int:
    """How many rows each of several ranges of a table has, but for the last one."""
    return rows // ranges if ranges > 1 else 0
