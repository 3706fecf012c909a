"""Tables as Arrow columns that are held in memory: their row images, and their rows in the order of a key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.base import Key
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.columns import CapturedTable, ColumnRules
from tailrace.connectors.snapshots import PagingKey, check_width
from tailrace.connectors.value_type import converted
from tailrace.model.table import TableId, TableSchema


@dataclass(frozen=True)
class WholeTable:
    """A table of a database as of a position: its columns in order, its key, and all rows, a column for each."""

    columns: tuple[ColumnInfo, ...]
    key: tuple[str, ...]
    rows: pa.Table


@dataclass(frozen=True)
class CapturedRows:
    """A captured table, and its rows as the database has them."""

    captured: CapturedTable
    rows: pa.Table

    @property
    def schema(self) -> TableSchema:
        """The table as events show it."""
        return self.captured.schema

    def images(self, rows: pa.Table | None = None, absent: pa.Array | None = None) -> pa.StructArray:
        """Images of rows of the table, of all by default; null where a row is `absent`. Raises DecodeError."""
        given = self.rows if rows is None else rows
        schema = self.captured.schema
        columns = [
            converted(given.column(column.name).combine_chunks(), kind, f"{schema.id}.{column.name}")
            for column, kind in zip(schema.columns, self.captured.types, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(schema.row_type), mask=absent)


def captured_rows(config: Config, id_: TableId, table: WholeTable) -> CapturedRows | None:
    """A table with filters, masks and converters applied; None if none of its columns is captured."""
    captured = ColumnRules(config).captured(id_, table.columns, table.key, [column.name for column in table.columns])
    return None if captured is None else CapturedRows(captured, table.rows)


def captured_tables(
    config: Config, tables: Mapping[TableId, WholeTable], *, first: bool = False
) -> dict[TableId, CapturedRows]:
    """The captured ones, in snapshot order; with `first` those that the first snapshot reads."""
    filters = TableFilter.from_config(config)
    ids = filters.order(filter(filters.snapshots if first else filters.captures, tables))
    each = ((id_, captured_rows(config, id_, tables[id_])) for id_ in ids)
    return {id_: table for id_, table in each if table is not None}


@dataclass(frozen=True)
class OrderedRows:
    """Rows in the order of some columns, nulls last. A key is the texts of their values, None for a null."""

    rows: pa.Table
    names: tuple[str, ...]

    @staticmethod
    def of(rows: pa.Table, names: Sequence[str]) -> OrderedRows:
        """Rows in any order, which are sorted."""
        order = [(name, "ascending") for name in names]  # which has nulls last
        return OrderedRows(rows.take(pc.sort_indices(rows, sort_keys=order)), tuple(names))

    @property
    def last_key(self) -> PagingKey | None:
        """The key of the last row; None without rows."""
        rows = self.rows.slice(max(0, self.rows.num_rows - 1))
        return next(iter(key_texts(rows.select(self.names))), None)

    def between(self, after: PagingKey | None, until: PagingKey | None, size: int) -> OrderedRows:
        """At most `size` rows behind a key (None: from the first), up to another (None: to the last)."""
        begin = 0 if after is None else self._up_to(after)
        end = self.rows.num_rows if until is None else self._up_to(until)
        return OrderedRows(self.rows.slice(begin, max(0, min(size, end - begin))), self.names)

    def find(self, keys: Sequence[Key]) -> tuple[pa.Table, list[Key]]:
        """The rows of some keys, and the keys without a row."""
        check_width(keys, len(self.names), ", ".join(self.names))
        places = {key: self._up_to(key) - 1 for key in keys}
        has_row = {key: row >= 0 and self._place(row) == self._ordered(key) for key, row in places.items()}
        rows = self.rows.take(pa.array([places[key] for key in keys if has_row[key]], pa.int64()))
        return rows, [key for key in keys if not has_row[key]]

    def keyed(self, keys: Sequence[Key]) -> pa.Table:
        """Rows of nothing but a key; a text that is no value of its column is null."""
        given = dict(zip(self.names, zip(*keys, strict=True), strict=True)) if keys else {}
        columns = [
            _values(given[field.name], field.type) if field.name in given else pa.nulls(len(keys), field.type)
            for field in self.rows.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.rows.schema)

    def _up_to(self, key: PagingKey) -> int:
        """How many rows there are up to a key."""
        return bisect_right(range(self.rows.num_rows), self._ordered(key), key=self._place)

    def _place(self, row: int) -> list[tuple[bool, Any]]:
        return _comparable([self.rows.column(name)[row].as_py() for name in self.names])

    def _ordered(self, key: PagingKey) -> list[tuple[bool, Any]]:
        types = [self.rows.schema.field(name).type for name in self.names]
        return _comparable([_values([part], kind)[0].as_py() for part, kind in zip(key, types, strict=True)])


def key_texts(columns: pa.Table) -> list[Any]:
    """The key of each row, by all columns of a table."""
    return list(zip(*(column.cast(pa.string()).to_pylist() for column in columns.columns), strict=True))


def _values(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """Texts as values of a column; null for one that is none."""
    try:
        return pa.array(texts, pa.string()).cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(1, kind) if len(texts) == 1 else pa.concat_arrays([_values([each], kind) for each in texts])


def _comparable(values: Sequence[Any]) -> list[tuple[bool, Any]]:
    return [(value is None, value) for value in values]
