"""The tables as of now, for comparing: all rows of a table or those of some keys, and how far the log must be read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.ports import SourceNow
from tailrace.connectors.sqlserver.arrays import images, selected
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import FAILURES, Connection
from tailrace.connectors.sqlserver.log.end import log_end
from tailrace.connectors.sqlserver.snapshot.chunks import PagedTable
from tailrace.connectors.sqlserver.snapshot.keys import KeyColumn
from tailrace.connectors.sqlserver.statements import table as table_name
from tailrace.connectors.sqlserver.statements import text
from tailrace.errors import SourceError
from tailrace.model.native import native_rows
from tailrace.model.table import TableId, TableSchema

_PIECE = 500
_BLOCK = 20_000
_POLLING_S = 5.0


class SqlServerNow(SourceNow):
    """Implements SourceNow. Rows are read as they are at that moment, each table after the other."""

    def __init__(self, connection: Connection, config: Config) -> None:
        self._connection, self._config = connection, config
        self._catalog = Catalog(connection, config)
        self._tables: dict[TableId, PagedTable] = {}

    @cached_property
    def horizon(self) -> Reading:
        """See SourceNow.horizon: asked for when the capture job has had the time for what is committed by now."""
        with FAILURES.translated("the capture job cannot be asked"):
            time.sleep(self._polling_seconds())
            return log_end(self._connection, self._config)

    def _polling_seconds(self) -> float:
        """The pause of the slowest capture job."""
        return max((self._polling(database) for database in self._catalog.databases()), default=0.0)

    def _polling(self, database: str) -> float:
        query = (
            "SELECT MAX(pollinginterval) FROM msdb.dbo.cdc_jobs "
            f"WHERE job_type = N'capture' AND database_id = DB_ID({text(database)})"
        )
        try:
            return float(self._connection.value(query) or 0)
        except FAILURES.driver_error:
            return _POLLING_S

    def tables(self) -> list[TableId]:
        """See SourceNow.tables."""
        with FAILURES.translated("the tables cannot be listed"):
            return self._catalog.captured()

    def followed(self) -> list[TableId]:
        """See SourceNow.followed."""
        with FAILURES.translated("the tables cannot be listed"):
            return self._catalog.read_first()

    def table(self, table: TableId) -> TableSchema:
        """See SourceNow.table."""
        with FAILURES.translated(f"{table} cannot be looked at"):
            number = self._catalog.tables().get(table)
            captured = None if number is None else self._catalog.table(table)
            if number is None or captured is None:
                raise SourceError("the table is gone, or has no columns that are captured", where=str(table))
            whole = self._catalog.described(table, number)
        self._tables[table] = PagedTable(self._connection, self._config, captured, whole)
        return captured.schema

    def obstacle(self, table: TableSchema, key: Sequence[str]) -> str | None:
        """See SourceNow.obstacle."""
        if not key:
            return "it has no key"
        return None if tuple(key) == table.key else f"its replica is not kept by {', '.join(table.key) or 'a key'}"

    def rows(self, table: TableSchema) -> Iterator[pa.Table]:
        """See SourceNow.rows."""
        captured = self._tables[table.id].captured
        statement = f"SELECT {', '.join(selected(captured))} FROM {table_name(table.id)}"
        with FAILURES.translated(f"{table.id} cannot be read"):
            for block in self._connection.blocks(statement, _BLOCK):
                yield _native(table, images(captured, list(zip(*block, strict=True)), len(block)))

    def texts(self, keys: pa.Table) -> list[Key]:
        """See SourceNow.texts."""
        columns = [_texts(column.combine_chunks()).fill_null("").to_pylist() for column in keys.columns]
        return list(zip(*columns, strict=True))

    def understood(self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        """See SourceNow.understood: by TRY_CONVERT, which makes null of what is none."""
        found = self._tables[table.id]
        key = found.key_of(names)
        kinds = dict(zip((column.name for column in table.columns), found.captured.types, strict=True))
        schema = TableSchema(table.id, tuple(table.column(each) for each in names), (), ())
        for start in range(0, len(wanted), _PIECE):
            rows = []
            for values in wanted[start : start + _PIECE]:
                listed = [
                    kinds[column.name].text.format(column.literal(value).replace("CONVERT(", "TRY_CONVERT(", 1))
                    for column, value in zip(key, values, strict=True)
                ]
                with FAILURES.translated(f"keys of {table.id} cannot be read"):
                    rows += self._connection.rows(f"SELECT {', '.join(listed)}")
            types = tuple(kinds[column.name] for column in key)
            columns = [
                pa.nulls(len(rows), kind.arrow) if pa.types.is_null(raw.type) else kind.convert(raw)
                for kind, raw in zip(types, (pa.array(values) for values in zip(*rows, strict=True)), strict=True)
            ]
            yield _native(schema, pa.StructArray.from_arrays(columns, fields=list(schema.row_type)))

    def rows_of(
        self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        """See SourceNow.rows_of: a row's values are its version."""
        found = self._tables[table.id]
        key: tuple[KeyColumn, ...] = found.key_of(names)
        for start in range(0, len(wanted), _PIECE):
            with FAILURES.translated(f"rows of {table.id} cannot be read"):
                rows, _ = found.found(key, wanted[start : start + _PIECE])
            native = _native(table, rows)
            yield native, pa.array([repr(row) for row in native.to_pylist()], pa.string())


def _native(schema: TableSchema, found: pa.StructArray) -> pa.Table:
    rows = native_rows(schema, found)
    return pa.Table.from_arrays(rows.flatten(), schema=pa.schema(list(rows.type)))


def _texts(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_binary(kind):
        return pa.array([None if each is None else "0x" + each.hex() for each in values.to_pylist()], pa.string())
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(pa.string())
    return values.cast(pa.string())
