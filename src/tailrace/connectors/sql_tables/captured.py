"""The captured tables of a relational database: their order, sizes and structures."""

from __future__ import annotations

from collections.abc import Collection

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.options.databases import STORE_ONLY_CAPTURED_DATABASES_DDL, STORE_ONLY_CAPTURED_TABLES_DDL
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.options.topics import INCLUDE_SCHEMA_CHANGES
from tailrace.connectors.split_sizes import order_by_rows
from tailrace.connectors.sql_tables.databases import by_database
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.tables import Connection, Described
from tailrace.model.table import TableId

_STORE_ONLY = "schema.history.internal.store.only.captured"


class CapturedTables:
    """The captured tables, over one connection. Methods raise the driver's errors."""

    def __init__(self, dialect: SqlDialect, connection: Connection, config: Config) -> None:
        self.dialect, self.connection, self.config = dialect, connection, config
        self.catalog = dialect.catalog(connection, config)
        self.numbers = self.catalog.tables()
        self._describe = self.catalog.descriptions()

    def sizes(self) -> list[tuple[TableId, int]]:
        """The tables that a first snapshot reads, with their sizes in bytes."""
        return [(table, self.size_of(table)[0]) for table in self.to_read()]

    def tables(self) -> list[TableId]:
        """The captured tables."""
        return self.catalog.captured()

    def to_read(self) -> list[TableId]:
        """Those that a first snapshot reads, in the order in which it reads them."""
        tables = self.catalog.read_first()
        by = order_by_rows(self.config)
        if by != "disabled":
            rows = {table: self.size_of(table)[1] for table in tables}
            tables.sort(key=lambda table: rows[table], reverse=by == "descending")
        return self.in_order(tables)

    def in_order(self, tables: list[TableId]) -> list[TableId]:
        """Tables in the order in which they are read: those of each database together."""
        return by_database(tables, self.units())

    def unit(self, table: TableId) -> str:
        """The database, as each has a first and a last row."""
        return table.database

    def units(self) -> list[str]:
        """The databases in order."""
        return sorted(self.catalog.databases())

    def size_of(self, table: TableId) -> tuple[int, int]:
        """About the bytes and rows of a table."""
        return self.dialect.size_of(self.connection, table, self.numbers[table])

    def structures(self, wanted: Collection[str] | None = None) -> tuple[Described, ...]:
        """The structures of the tables that the reference engine keeps, or of those `wanted`."""
        if not self.config[INCLUDE_SCHEMA_CHANGES]:
            return ()
        if wanted is not None:
            tables = self.in_order([table for table in self.tables() if str(table) in wanted])
            return tuple(self.described(table) for table in tables)
        tables = [each for each in self.numbers if self._is_sent(each)]
        order = sorted(tables, key=str) if self.dialect.structures_by_name else self.catalog.filter.order(tables)
        return tuple(self.described(table) for table in self.in_order(list(order)))

    def _is_sent(self, table: TableId) -> bool:
        """Whether a first snapshot sends a table's structure, captured or not.

        That is what RelationalTableFilters.eligibleForSchemaDataCollectionFilter lets in.
        """
        lists = self.catalog.filter
        if self.dialect.sends_captured_only and Fault.LATE_STRUCTURES in self.config[COMPAT_FAULTS]:
            return lists.lists(table)
        if self.dialect.sends_captured_only or self.config[STORE_ONLY_CAPTURED_TABLES_DDL]:
            return lists.captures(table)
        return not self.config[STORE_ONLY_CAPTURED_DATABASES_DDL] or lists.is_in_place(table)

    def described(self, table: TableId) -> Described:
        """A table with the columns that snapshots read."""
        return self._describe(table, self.numbers[table])
