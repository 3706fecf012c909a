"""Chunks of tables that are given whole: a chunk is read at the end of the log, and its fence is that position."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.snapshot_ports import ChunkSession, ChunkTable, Page
from tailrace.connectors.snapshots import PagingKey, Unread
from tailrace.connectors.whole_tables.source import WholeSource
from tailrace.connectors.whole_tables.tables import CapturedRows, OrderedRows, captured_tables
from tailrace.errors import SourceError
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override


@dataclass(frozen=True)
class WholeSession(ChunkSession):
    """Implements ChunkSession."""

    source_: WholeSource
    config: Config

    @override
    @contextmanager
    def table(self, table: TableId, name: str, condition: str | None) -> Iterator[TableAtPosition]:
        position = self.source_.position_now()
        captured = captured_tables(self.config, self.source_.whole(position)).get(table)
        if captured is None:
            raise Unread("no such table is captured", "UNKNOWN_SCHEMA")
        yield TableAtPosition(self.source_, captured, position)


@dataclass(frozen=True)
class TableAtPosition(ChunkTable):
    """Implements ChunkTable: it ends where it is read, as the log up to there has nothing that the rows lack."""

    source_: WholeSource
    now: CapturedRows
    position: Any

    @property
    @override
    def schema(self) -> TableSchema:
        return self.now.schema

    @override
    def page(self, condition: str | None, surrogate: str | None) -> WholePage:
        names = tuple(dict.fromkeys((*self.paged_by(surrogate), *self.schema.key)))
        return WholePage(self.now, condition, names)

    @override
    def fence(self) -> str:
        text: str = self.position.to_text()
        return text

    @override
    def end(self) -> Any:
        return self.position

    @override
    def rows_of(self, keys: Sequence[Key]) -> tuple[pa.StructArray, pa.StructArray]:
        ordered = OrderedRows.of(self.now.rows, self.schema.key)
        rows, missing = ordered.find(keys)
        return self.now.images(rows), self.now.images(ordered.keyed(missing))

    @override
    def source(self, count: int, end: Any) -> pa.StructArray:
        return self.source_.source_of(end, count)


class WholePage(Page):
    """Implements Page. A condition is a JSON object of the values that a row must have."""

    def __init__(self, table: CapturedRows, condition: str | None, names: tuple[str, ...]) -> None:
        self._table, self._condition = table, condition
        self._ordered = OrderedRows.of(table.rows, names)

    @property
    @override
    def key_text(self) -> str:
        return ",".join(self._ordered.names)

    @override
    def check(self) -> None:
        if self._condition is None:
            return
        where = str(self._table.schema.id)
        try:
            wanted = json.loads(self._condition).items()
            for name, value in wanted:
                column = self._ordered.rows.column(name)
                equal = pc.equal(column, pa.scalar(value, column.type))
                self._ordered = OrderedRows(self._ordered.rows.filter(equal), self._ordered.names)
        except (ValueError, AttributeError, LookupError, TypeError, RecursionError) as error:
            raise SourceError(
                "the condition is no JSON object of columns and their values",
                where=where,
                remedy='send one like {"id": 7} as the filter of additional-conditions',
            ) from error

    @override
    def estimate(self) -> int:
        size: int = self._ordered.rows.num_rows
        return size

    @override
    def maximum(self) -> PagingKey | None:
        return self._ordered.last_key

    @override
    def after(
        self, last: PagingKey | None, maximum: PagingKey, size: int
    ) -> tuple[pa.StructArray, PagingKey | None, int]:
        page = self._ordered.between(last, maximum, size)
        return self._table.images(page.rows), page.last_key, page.rows.num_rows
