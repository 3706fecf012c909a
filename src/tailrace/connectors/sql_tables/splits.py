"""Plans the splits of a snapshot: tables, key ranges and markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tailrace.config import Config
from tailrace.config.overrides import origin_of, overrides
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.notifications import Notice, is_wanted
from tailrace.connectors.refusals import refusals
from tailrace.connectors.snapshot_notices import WITHOUT_ROWS
from tailrace.connectors.snapshots import PagingKey, Place, what_is_left
from tailrace.connectors.split_sizes import is_chunked, order_by_rows, pieces
from tailrace.connectors.sql_tables.databases import by_database, in_order
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.keys import KeyColumn, after, key_columns, order, printed
from tailrace.connectors.sql_tables.rows import Moment, Split
from tailrace.connectors.sql_tables.tables import Connection, Described
from tailrace.connectors.table_split import with_notices
from tailrace.connectors.user_select import UserSelect
from tailrace.model.table import TableId

_STORE_ONLY = "schema.history.internal.store.only.captured"


class SplitPlanner:
    """Plans the splits of a snapshot over one connection."""

    def __init__(self, dialect: SqlDialect, connection: Connection, config: Config) -> None:
        self.dialect, self.connection, self.config = dialect, connection, config
        self.catalog = dialect.catalog(connection, config)
        self._numbers = self.catalog.tables()
        self._describe = self.catalog.descriptions()

    def sizes(self) -> list[tuple[TableId, int]]:
        """The tables that a first snapshot reads, with their sizes in bytes."""
        return [(table, self._size_of(table)[0]) for table in self.to_read()]

    def to_read(self) -> list[TableId]:
        """The tables that a first snapshot reads, in order."""
        tables = self.catalog.read_first()
        by = order_by_rows(self.config)
        if by != "disabled":
            rows = {table: self._size_of(table)[1] for table in tables}
            tables.sort(key=lambda table: rows[table], reverse=by == "descending")
        return by_database(tables, self._databases())

    def _databases(self) -> list[str]:
        """The databases in the order in which they are read."""
        return in_order(self.config, self.catalog.databases())

    def _size_of(self, table: TableId) -> tuple[int, int]:
        return self.dialect.size_of(self.connection, table, self._numbers[table])

    def plan(self, moment: Moment, wanted: Mapping[str, str | None] | None, place: Place | None) -> list[Split]:
        """The splits of all tables, of those `wanted`, or of what is left at `place`."""
        given = overrides(self.config) if wanted is None else wanted
        splits: list[Split] = []
        tables = self._tables(wanted, place)
        # Each database has a snapshot of its own, with a first and a last row.
        begun = set() if place is None or place.is_whole else {table.database for table in tables[:1]}
        for table in tables:
            resumed = None if place is None else place.of(table)
            # A SELECT of the configuration may be given for schema.table, too.
            select = given.get(str(table), given.get(table.filtered))
            if select is None:
                found = self._of_table(moment, table, resumed)
            else:
                found = [self._chosen(moment, table, select, of_signal=wanted is not None)]
            if resumed is None and found:
                is_first = table.database not in begun
                begun.add(table.database)
                found[0] = replace(found[0], first="first" if is_first else "first_in_data_collection")
            splits += found
        splits = self._with_last(splits)
        if not is_wanted(self.config):
            return splits
        is_whole = wanted is None and (place is None or place.is_whole)
        databases = self._databases() if is_whole else list(dict.fromkeys(table.database for table in tables))
        return self._with_notices(splits, tables, databases, self._listed_tables(tables, wanted))

    def structures(self, wanted: Mapping[str, str | None] | None = None) -> tuple[Described, ...]:
        """The structures of the tables that the reference engine keeps, or of those `wanted`."""
        if not self.config.flag("include.schema.changes"):
            return ()
        if wanted is not None:
            return tuple(self._described(table) for table in self._tables(wanted, None))
        tables = [each for each in self._numbers if self._is_sent(each)]
        order = sorted(tables, key=str) if self.dialect.structures_by_name else self.catalog.filter.order(tables)
        return tuple(self._described(table) for table in by_database(order, self._databases()))

    def _is_sent(self, table: TableId) -> bool:
        """Whether a first snapshot sends a table's structure, captured or not.

        That is what RelationalTableFilters.eligibleForSchemaDataCollectionFilter lets in.
        """
        lists = self.catalog.filter
        if self.dialect.sends_captured_only and self.config.flag("compat.faults"):
            return lists.lists(table)
        if self.dialect.sends_captured_only or self.config.flag(f"{_STORE_ONLY}.tables.ddl"):
            return lists.captures(table)
        return not self.config.flag(f"{_STORE_ONLY}.databases.ddl") or lists.is_in_place(table)

    def _described(self, table: TableId) -> Described:
        return self._describe(table, self._numbers[table])

    def _tables(self, wanted: Mapping[str, str | None] | None, place: Place | None) -> list[TableId]:
        tables = what_is_left(self.catalog.captured, self.to_read, wanted, place)
        return tables if wanted is None else by_database(tables, self._databases())

    def _chosen(self, moment: Moment, table: TableId, select: str, *, of_signal: bool) -> Split:
        """The rows of a SELECT of the user's, with the columns of the table."""
        origin = origin_of(str(table), of_signal=of_signal)
        described = self._described(table)
        with refusals(self.dialect.failures, table, origin):
            if of_signal:
                select = self.dialect.grammar.query(select)
                # By itself, where no parenthesis is open that it could close.
                self.dialect.parse(self.connection, select)
            select, captured = self._listed(select, described), self.catalog.capture(described)
            if captured is not None:
                self.catalog.guard(captured, self._numbers[table])
                select = self._as_table(captured, select, origin)
        return Split(moment, table, select=select, last="last_in_data_collection")

    def _as_table(self, captured: CapturedTable, select: str, origin: str) -> str:
        dialect, table, connection = self.dialect, captured.schema.id, self.connection
        source = f"{dialect.derived(select)} AS chosen"
        found = connection.names(f"SELECT * FROM {source} WHERE 1 = 0")
        whole = self.catalog.described(table, self._numbers[table])
        types = {column.name: column.type.declared for column in whole.columns}
        columns = UserSelect(table, found, list(types), {column.name for column in captured.schema.columns}, origin)
        return columns.as_table(
            self.config,
            source,
            dialect.name,
            lambda name: f"CAST(NULL AS {types[name]})",
            lambda: bool(connection.rows(dialect.limited(f"SELECT 1 FROM {source}", 1))),
        )

    def _of_table(self, moment: Moment, table: TableId, resumed: Place | None) -> list[Split]:
        described = self._described(table)
        captured = self.catalog.capture(described)
        if captured is not None:
            self.catalog.guard(captured, self._numbers[table])
        size, rows = self._size_of(table)
        key = key_columns(described, described.key)
        low = None if resumed is None or resumed.last is None else tuple(resumed.last)
        bounds = self._bounds(table, key, pieces(self.config, str(table), size), rows, low)
        found = [
            Split(
                moment,
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
        began = None if resumed is None else resumed.began
        found = [replace(each, began=began) for each in found]
        found[-1] = replace(found[-1], last="last_in_data_collection")
        return found

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
        found = self.connection.rows(statement)
        return [low, *(self.dialect.texts(row) for row in found[: count - 1])]

    def _with_last(self, splits: list[Split]) -> list[Split]:
        """The splits, the last of each database that has a row with the marker of the last row."""
        ended = set()
        for number in range(len(splits) - 1, -1, -1):
            split = splits[number]
            database = split.table.database
            if database not in ended and self._has_rows(split):
                splits[number] = replace(split, last="last")
                ended.add(database)
        return splits

    def _has_rows(self, split: Split) -> bool:
        condition = f" WHERE {after(self.dialect, split.key, split.low)}" if split.low else ""
        table = self.dialect.table(split.table)
        if split.select is not None:
            table = f"{self.dialect.derived(split.select)} AS chosen"
        statement = f"SELECT 1 FROM {table}{condition}"
        return bool(self.connection.rows(self.dialect.limited(statement, 1)))

    def _listed_tables(self, tables: list[TableId], wanted: Mapping[str, str | None] | None) -> list[TableId]:
        """The tables that notices list."""
        if wanted is not None:
            return tables
        return [each for each in self.catalog.captured() if self.catalog.filter.lists(each)]

    def _with_notices(
        self, splits: list[Split], tables: list[TableId], databases: list[str], listed: list[TableId]
    ) -> list[Split]:
        """The splits with the notices around them: those of a snapshot of each database, also of one without tables."""
        names = [str(split.table) for split in splits]
        several = {each for each in names if names.count(each) > 1}
        counts = {str(table): self._count(table) for table in tables if str(table) in several}
        chunked = is_chunked(self.config)
        found: list[Split] = []
        waiting: tuple[Notice, ...] = ()
        for database in databases:
            mine = [split for split in splits if split.table.database == database]
            order, own = ([each for each in all_ if each.database == database] for all_ in (tables, listed))
            steps = {str(split.table): split.rows for split in mine}
            noticed = with_notices(mine, order, own, counts, chunked=chunked, steps=steps)
            if not noticed:
                waiting += WITHOUT_ROWS
                continue
            found += [noticed[0].announced(waiting), *noticed[1:]]
            waiting = ()
        if found:
            found[-1] = replace(found[-1], after=(*found[-1].after, *waiting))
        return found

    def _count(self, table: TableId) -> int:
        return int(self.connection.value(f"SELECT {self.dialect.count} FROM {self.dialect.table(table)}"))

    def _listed(self, select: str, described: Described) -> str:
        """A user-supplied SELECT; a `*` in its list is replaced by the columns."""
        head, star, rest = select.partition("*")
        is_list = star and head.strip().upper() in ("SELECT", "SELECT ALL", "SELECT DISTINCT")
        columns = ", ".join(self.dialect.name(column.name) for column in described.columns)
        return f"{head}{columns}{rest}".rstrip().rstrip(";") if is_list else select.rstrip().rstrip(";")


def _step(rows: int, ranges: int) -> int:
    """How many rows each of several ranges of a table has, but for the last one."""
    return rows // ranges if ranges > 1 else 0
