"""Reads the current content of tables for comparisons: all rows or those of some keys, with a log position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.ports import SourceNow
from tailrace.connectors.postgres.admin.comparable import aside, obstacle
from tailrace.connectors.postgres.admin.operations import LogPosition
from tailrace.connectors.postgres.catalog.tables import Catalog, source_of
from tailrace.connectors.postgres.position import parse_lsn
from tailrace.connectors.postgres.server.connect import connect, server_errors
from tailrace.connectors.postgres.snapshot import keys, transfer
from tailrace.connectors.postgres.snapshot.chunks import flushed
from tailrace.connectors.postgres.snapshot.keys import texts as key_texts
from tailrace.connectors.postgres.snapshot.paging import Paging
from tailrace.connectors.postgres.snapshot.ranges import table_bytes
from tailrace.connectors.snapshot_pages import page_of
from tailrace.connectors.snapshots import PagingKey
from tailrace.errors import SourceError
from tailrace.model.native import compared_rows
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

# Keys of one query.
_PIECE = 5000


class PostgresNow(SourceNow):
    """Implements SourceNow by a repeatable-read transaction of one connection."""

    def __init__(self, connection: psycopg.Connection, config: Config, horizon: LogPosition) -> None:
        self._connection = connection
        self._catalog = Catalog(connection, config)
        self._captured: dict[TableId, CapturedTable] = {}
        self._horizon = horizon

    @property
    @override
    def horizon(self) -> LogPosition:
        return self._horizon

    @override
    def tables(self) -> list[TableId]:
        return self._catalog.tables()

    @override
    def followed(self) -> list[TableId]:
        tables = self.tables()
        apart = aside(self._connection, self._catalog.config, tables)
        return [table for table in tables if table not in apart]

    @override
    def table(self, table: TableId) -> TableSchema:
        captured = self._catalog.table(table)
        if captured is None:
            raise SourceError(
                "the table does not exist, or has no captured columns",
                where=str(table),
                remedy="remove it from the pipeline (`tailrace remove`), or check column.exclude.list",
            )
        self._captured[table] = captured
        return captured.schema

    @override
    def obstacle(self, table: TableSchema, key: Sequence[str]) -> str | None:
        return obstacle(self._connection, self._catalog.config, self._captured[table.id], key)

    @override
    def left_out(self, table: TableSchema) -> Sequence[str]:
        return self._captured[table.id].left_out

    @override
    def excluded(self, table: TableSchema) -> Sequence[str]:
        return self._captured[table.id].excluded

    @override
    def rows(self, table: TableSchema) -> Iterator[pa.Table]:
        row = self._connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        captured = self._captured[table.id]
        source = sql.SQL(" FROM {}").format(source_of(captured))
        size = table_bytes(self._connection, table.id)
        for block in transfer.blocks(self._catalog.config, row[0], captured, source, size):
            yield compared_rows(table, block.images(np.arange(block.rows, dtype=np.int64)))

    @override
    def page(
        self, table: TableSchema, after: PagingKey | None, until: PagingKey | None, size: int
    ) -> tuple[pa.Table, PagingKey | None]:
        types = self._types(table, table.key)
        pages = Paging(self._connection, self._captured[table.id], None, types, frozenset())
        return page_of(table, pages, after, until, size)

    @override
    def texts(self, keys: pa.Table) -> list[Key]:
        return key_texts(keys)

    @override
    def understood(self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        types = self._types(table, names)
        for start in range(0, len(wanted), _PIECE):
            yield from self._understood(self._captured[table.id], types, wanted[start : start + _PIECE])

    @override
    def rows_of(
        self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        types, captured = self._types(table, names), self._captured[table.id]
        for start in range(0, len(wanted), _PIECE):
            images, versions = keys.rows(self._connection, captured, types, wanted[start : start + _PIECE])
            yield compared_rows(table, images), versions

    def _understood(self, table: CapturedTable, types: keys.KeyTypes, wanted: Sequence[Key]) -> Iterator[pa.Table]:
        """By halves where some are refused, as a server before version 16 does not tell which."""
        schema = TableSchema(table.schema.id, tuple(table.schema.column(name) for name, _ in types), (), ())
        try:
            with self._connection.transaction():
                images = keys.images(self._connection, table, types, wanted)
        except (SourceError, psycopg.DataError):  # psycopg refuses a text with a zero byte
            if len(wanted) > 1:
                half = len(wanted) // 2
                yield from self._understood(table, types, wanted[:half])
                yield from self._understood(table, types, wanted[half:])
                return
            images = pa.array([dict.fromkeys(schema.row_type.names)], schema.row_type)
        yield compared_rows(schema, images)

    def _types(self, table: TableSchema, names: Sequence[str]) -> keys.KeyTypes:
        types = self._catalog.key_types(table.id, tuple(names))
        if not types:
            raise SourceError("its key has changed meanwhile", where=str(table.id), remedy="compare it again")
        return types


@contextmanager
def present(config: Config) -> Iterator[PostgresNow]:
    """The source as it is now. Raises SourceError."""
    with server_errors("the source cannot be read"), connect(config, application="tailrace reconcile") as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SELECT pg_current_snapshot()")
        yield PostgresNow(connection, config, _horizon(connection, config))
        connection.execute("COMMIT")


def _horizon(connection: psycopg.Connection, config: Config) -> LogPosition:
    """Where the log ends by now, as far as a pipeline can read it: no further than where it is flushed or replayed."""
    end = flushed(connection, config)
    row = connection.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_flush_lsn() END::text"
    ).fetchone()
    assert row is not None
    return LogPosition(end if row[0] is None else min(end, parse_lsn(row[0])))
