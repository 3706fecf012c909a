"""The rows of tables that are given whole as of now, for comparing with a replica."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tailrace.config.filters import TableFilter
from tailrace.connectors.base import Key
from tailrace.connectors.ports import SourceNow
from tailrace.connectors.snapshots import PagingKey
from tailrace.connectors.whole_tables.source import WholeSource
from tailrace.connectors.whole_tables.tables import CapturedRows, OrderedRows, captured_tables, key_texts
from tailrace.errors import SourceError
from tailrace.model.native import compared_rows
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override


class WholeNow(SourceNow):
    """Implements SourceNow by the tables as of the end of the log."""

    def __init__(self, source: WholeSource) -> None:
        self._config, self._end = source.config, source.position_now()
        self._tables = captured_tables(source.config, source.whole(self._end))

    @property
    @override
    def horizon(self) -> Any:
        return self._end

    @override
    def tables(self) -> list[TableId]:
        return [*self._tables]

    @override
    def followed(self) -> list[TableId]:
        return list(filter(TableFilter.from_config(self._config).snapshots, self._tables))

    @override
    def table(self, table: TableId) -> TableSchema:
        if table not in self._tables:
            raise SourceError("the table is gone", where=str(table), remedy="remove it from the pipeline")
        return self._tables[table].schema

    @override
    def rows(self, table: TableSchema) -> Iterator[pa.Table]:
        yield self._native(table, self._of(table).rows)

    @override
    def page(
        self, table: TableSchema, after: PagingKey | None, until: PagingKey | None, size: int
    ) -> tuple[pa.Table, PagingKey | None]:
        page = OrderedRows.of(self._of(table).rows, table.key).between(after, until, size)
        return self._native(table, page.rows), page.last_key

    @override
    def texts(self, keys: pa.Table) -> list[Key]:
        return key_texts(keys)

    @override
    def understood(self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        keyed = OrderedRows.of(self._of(table).rows, names).keyed(wanted)
        yield self._native(table, keyed).select(list(names))

    @override
    def rows_of(
        self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        rows, _ = OrderedRows.of(self._of(table).rows, names).find(wanted)
        yield self._native(table, rows), pa.array(map(str, rows.to_pylist()), pa.string())

    def _of(self, table: TableSchema) -> CapturedRows:
        return self._tables[table.id]

    def _native(self, table: TableSchema, rows: pa.Table) -> pa.Table:
        return compared_rows(table, self._of(table).images(rows))
