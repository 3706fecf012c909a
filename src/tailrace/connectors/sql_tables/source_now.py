"""Reads the current content of tables for comparisons: all rows or those of some keys, with a log position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.ports import Position, SourceNow
from tailrace.connectors.shared_keys import is_unique, key_not_unique
from tailrace.connectors.snapshot_pages import page_of
from tailrace.connectors.snapshots import PagingKey
from tailrace.connectors.sql_tables.chunks import PagedTable, Paging
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.images import block, expression, image, images, selected
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.errors import SourceError
from tailrace.model.native import compared_rows
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

_PIECE = 500  # guessed
_BLOCK = 20_000  # guessed


class SqlTablesNow(SourceNow):
    """Implements SourceNow. Rows are read as they are at that moment, each table after the other."""

    def __init__(self, dialect: SqlDialect, connection: Connection, config: Config) -> None:
        self._dialect, self._connection, self._config = dialect, connection, config
        self._catalog = dialect.catalog(connection, config)
        self._tables: dict[TableId, PagedTable] = {}

    @cached_property
    @override
    def horizon(self) -> Position:
        """Queried once the log had time to get what is committed by now."""
        with self._translated("the capture program cannot be queried"):
            self._dialect.wait_for_log(self._connection, self._config)
            return self._dialect.log_end(self._connection, self._config)

    def _translated(self, doing: str) -> AbstractContextManager[None]:
        return self._dialect.failures.translated(doing)

    @override
    def tables(self) -> list[TableId]:
        with self._translated("the tables cannot be listed"):
            return self._catalog.captured()

    @override
    def followed(self) -> list[TableId]:
        with self._translated("the tables cannot be listed"):
            return self._catalog.read_first()

    @override
    def table(self, table: TableId) -> TableSchema:
        with self._translated(f"{table} cannot be looked at"):
            number = self._catalog.tables().get(table)
            captured = None if number is None else self._catalog.table(table)
            if number is None or captured is None:
                raise SourceError(
                    "the table does not exist, or has no captured columns",
                    where=str(table),
                    remedy="remove it from the pipeline (`tailrace remove`), or check column.exclude.list",
                )
            self._catalog.guard(captured, number)
            whole = self._catalog.described(table, number)
        self._tables[table] = PagedTable(self._dialect, self._connection, self._config, captured, whole)
        return captured.schema

    @override
    def obstacle(self, table: TableSchema, key: Sequence[str]) -> str | None:
        if not key:
            return None
        if tuple(key) != table.key:
            return f"its replica is not kept by {', '.join(table.key) or 'a key'}"
        with self._translated(f"{table.id} cannot be looked at"):
            unique = self._catalog.unique(table.id, self._catalog.tables()[table.id])
        return None if is_unique(key, unique) else key_not_unique(key)

    @override
    def left_out(self, table: TableSchema) -> Sequence[str]:
        return self._tables[table.id].captured.left_out

    @override
    def excluded(self, table: TableSchema) -> Sequence[str]:
        columns = self._tables[table.id].described.columns
        captured = {column.name for column in table.columns}
        shown = {*self._catalog.filter.columns(table.id, [each.name for each in columns])}
        return [
            each.name for each in columns if each.name not in captured and (each.is_computed or each.name not in shown)
        ]

    @override
    def unlogged(self, table: TableSchema) -> Sequence[str]:
        current = self._tables[table.id]
        captured = {*(column.name for column in table.columns), *current.captured.left_out, *self.excluded(table)}
        return [each.name for each in current.described.columns if each.name not in captured]

    @override
    def rows(self, table: TableSchema) -> Iterator[pa.Table]:
        captured = self._tables[table.id].captured
        statement = f"SELECT {', '.join(selected(self._dialect.name, captured))} FROM {self._dialect.table(table.id)}"
        with self._translated(f"{table.id} cannot be read"):
            for columns in self._connection.blocks(statement, _BLOCK):
                yield compared_rows(table, images(captured, columns, len(columns[0])))

    @override
    def page(
        self, table: TableSchema, after: PagingKey | None, until: PagingKey | None, size: int
    ) -> tuple[pa.Table, PagingKey | None]:
        with self._translated(f"rows of {table.id} cannot be read"):
            current = self._tables[table.id]
            return page_of(table, Paging(current, None, current.key_of(table.key)), after, until, size)

    @override
    def texts(self, keys: pa.Table) -> list[Key]:
        columns = [self._texts(column.combine_chunks()).fill_null("").to_pylist() for column in keys.columns]
        return list(zip(*columns, strict=True))

    def _texts(self, values: pa.Array) -> pa.Array:
        kind, octets = values.type, self._dialect.octets
        if pa.types.is_binary(kind):
            return pa.array([None if each is None else octets(each) for each in values.to_pylist()], pa.string())
        if pa.types.is_boolean(kind):
            return values.cast(pa.int8()).cast(pa.string())
        return values.cast(pa.string())

    @override
    def understood(self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        """The server makes null of what is none."""
        current = self._tables[table.id]
        key = current.key_of(names)
        kinds = dict(zip((column.name for column in table.columns), current.captured.types, strict=True))
        schema = TableSchema(table.id, tuple(table.column(each) for each in names), (), ())
        for start in range(0, len(wanted), _PIECE):
            rows = []
            for values in wanted[start : start + _PIECE]:
                listed = [
                    expression(kinds[column.name], self._dialect.tried(column.type, value))
                    for column, value in zip(key, values, strict=True)
                ]
                with self._translated(f"keys of {table.id} cannot be read"):
                    rows += self._connection.rows(self._dialect.one_row(listed))
            columns = [
                image(kinds[column.name], values, len(rows), f"{table.id}.{column.name}")
                for column, values in zip(key, block(rows), strict=True)
            ]
            yield compared_rows(schema, pa.StructArray.from_arrays(columns, fields=list(schema.row_type)))

    @override
    def rows_of(
        self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        """A row's values are its version."""
        current = self._tables[table.id]
        key = current.key_of(names)
        for start in range(0, len(wanted), _PIECE):
            with self._translated(f"rows of {table.id} cannot be read"):
                rows, _ = current.existing_rows(key, wanted[start : start + _PIECE])
            native = compared_rows(table, rows)
            yield native, pa.array([repr(row) for row in native.to_pylist()], pa.string())
