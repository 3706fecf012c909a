"""What commands ask of the folder: checks, tables, its state, and its rows as of now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.base import Key
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import SourceNow, SourceState, TableOverview
from tailrace.connectors.shared_log import SharedLogAdmin
from tailrace.connectors.snapshots import PagingKey
from tailrace.errors import SourceError
from tailrace.model.native import native_rows
from tailrace.model.table import TableId, TableSchema
from tailrace_folder import rows
from tailrace_folder.connector import FolderConnector
from tailrace_folder.log import Line, Log
from tailrace_folder.snapshots import by_key, key_text, keyed


class FolderAdmin(SharedLogAdmin):
    """Implements Admin."""

    connector = FolderConnector

    def found(self) -> list[Finding]:
        captured = rows.tables(self.config, Log.of(self.config).now())
        return [Finding("tables", True, f"{len(captured)} tables are captured")]

    def overview(self) -> list[TableOverview]:
        contents = Log.of(self.config).now()
        return [TableOverview(one, len(contents[one].rows), 0, bool(contents[one].key)) for one in sorted(contents)]

    def unreadable(self, tables: Sequence[TableId]) -> Finding:
        """A user reads all tables or none."""
        return Finding("folder", False, f"{', '.join(map(str, tables))} cannot be read", "set reads in users.json")

    def state(self, pipeline: str | None = None) -> SourceState:
        return SourceState(Log.of(self.config).end())

    def extended(self) -> str:
        return "the folder"

    def now(self) -> AbstractContextManager[FolderNow]:
        return nullcontext(FolderNow(self.config))


class FolderNow(SourceNow):
    """Implements SourceNow by the tables as of the end of the log."""

    def __init__(self, config: Config) -> None:
        log = Log.of(config)
        self._config, self._end = config, log.end()
        self._tables = {one.captured.schema.id: one for one in rows.tables(config, log.tables(self._end))}

    @property
    def horizon(self) -> Line:
        return self._end

    def tables(self) -> list[TableId]:
        return [*self._tables]

    def followed(self) -> list[TableId]:
        return list(filter(TableFilter.from_config(self._config).snapshots, self._tables))

    def table(self, table: TableId) -> TableSchema:
        if table not in self._tables:
            raise SourceError("the table is gone", where=str(table), remedy="remove it from the pipeline")
        return self._tables[table].captured.schema

    def rows(self, table: TableSchema) -> Iterator[pa.Table]:
        yield self._native(table, self._tables[table.id].rows)

    def page(
        self, table: TableSchema, after: PagingKey | None, until: PagingKey | None, size: int
    ) -> tuple[pa.Table, PagingKey | None]:
        low, high = (None if bound is None else [int(part or 0) for part in bound] for bound in (after, until))
        found = [
            (key, row)
            for row in self._tables[table.id].rows
            for key in [[row[name] for name in table.key]]
            if (low is None or key > low) and (high is None or key <= high)
        ]
        chosen = [row for _, row in sorted(found, key=itemgetter(0))[:size]]
        return self._native(table, chosen), key_text(chosen[-1], table.key) if chosen else None

    def texts(self, keys: pa.Table) -> list[Key]:
        return [key_text(row, keys.column_names) for row in keys.to_pylist()]

    def understood(self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        yield self._native(table, [keyed(names, key) for key in wanted]).select(names)

    def rows_of(
        self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        known = by_key(self._tables[table.id].rows, names)
        found = [known[key] for key in wanted if key in known]
        yield self._native(table, found), pa.array(map(json.dumps, found), pa.string())

    def _native(self, table: TableSchema, found: Sequence[dict[str, Any]]) -> pa.Table:
        native = native_rows(table, self._tables[table.id].images(found))
        return pa.Table.from_arrays(native.flatten(), schema=pa.schema(list(native.type)))
