"""The source as of one moment, for comparing: all rows of a table or those of some keys, and where its log is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.admin.comparable import aside, obstacle
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.position import parse_lsn
from tailrace.connectors.postgres.server.connect import connect, server_errors
from tailrace.connectors.postgres.snapshot import keys, transfer
from tailrace.connectors.postgres.snapshot.incremental import flushed
from tailrace.connectors.postgres.snapshot.ranges import table_bytes
from tailrace.errors import SourceError
from tailrace.model.native import native_rows
from tailrace.model.table import TableId, TableSchema
from tailrace.snapshot.reading import Key

# Keys of one query.
_PIECE = 5000


class Present:
    """A snapshot, held by its connection. The log up to `horizon` has every transaction that it shows."""

    def __init__(self, connection: psycopg.Connection, config: Config, horizon: int) -> None:
        self._connection = connection
        self._catalog = Catalog(connection, config)
        self.horizon = horizon

    def tables(self) -> list[TableId]:
        """The captured tables, in snapshot order."""
        return self._catalog.tables()

    def followed(self) -> list[TableId]:
        """Those captured tables of which a replica is expected, in snapshot order."""
        tables = self.tables()
        apart = aside(self._connection, self._catalog.config, tables)
        return [table for table in tables if table not in apart]

    def obstacle(self, table: CapturedTable, key: Sequence[str]) -> str | None:
        """Why a table cannot be compared with a replica of this key, None where it can."""
        return obstacle(self._connection, self._catalog.config, table, key)

    def table(self, table: TableId) -> CapturedTable:
        """A table as it is at this moment. Raises SourceError when it is gone."""
        found = self._catalog.table(table)
        if found is None:
            raise SourceError("the table is gone, or has no columns that are captured", where=str(table))
        return found

    def rows(self, table: CapturedTable) -> Iterator[pa.Table]:
        """All rows in native types, some megabytes at a time. Raises SourceError, DecodeError."""
        id_ = table.schema.id
        row = self._connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        source = sql.SQL(" FROM {}").format(sql.Identifier(id_.schema, id_.table))
        size = table_bytes(self._connection, id_)
        for block in transfer.blocks(self._catalog.config, row[0], table, source, size):
            yield _native(table.schema, block.images(np.arange(block.rows, dtype=np.int64)))

    def rows_of(
        self, table: CapturedTable, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        """The rows of some keys in native types, and what names each one's version. Raises SourceError, DecodeError."""
        types = self._types(table, names)
        for start in range(0, len(wanted), _PIECE):
            images, versions = keys.rows(self._connection, table, types, wanted[start : start + _PIECE])
            yield _native(table.schema, images), versions

    def understood(self, table: CapturedTable, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        """The keys as the source reads them, in their order, null where a text is no value of its column."""
        types = self._types(table, names)
        for start in range(0, len(wanted), _PIECE):
            yield from self._understood(table, types, wanted[start : start + _PIECE])

    def _understood(self, table: CapturedTable, types: keys.KeyTypes, wanted: Sequence[Key]) -> Iterator[pa.Table]:
        """By halves where some are refused, as a server before version 16 does not tell which."""
        schema = TableSchema(table.schema.id, tuple(table.schema.column(name) for name, _ in types), (), ())
        try:
            with self._connection.transaction():
                found = keys.images(self._connection, table, types, wanted)
        except SourceError:
            if len(wanted) > 1:
                half = len(wanted) // 2
                yield from self._understood(table, types, wanted[:half])
                yield from self._understood(table, types, wanted[half:])
                return
            found = pa.array([dict.fromkeys(schema.row_type.names)], schema.row_type)
        yield _native(schema, found)

    def _types(self, table: CapturedTable, names: Sequence[str]) -> keys.KeyTypes:
        types = self._catalog.key_types(table.schema.id, tuple(names))
        if not types:
            raise SourceError("its key has changed meanwhile", where=str(table.schema.id), remedy="compare it again")
        return types


@contextmanager
def present(config: Config) -> Iterator[Present]:
    """The source as it is now. Raises SourceError."""
    with server_errors("the source cannot be read"), connect(config, application="tailrace reconcile") as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SELECT pg_current_snapshot()")
        yield Present(connection, config, _horizon(connection, config))
        connection.execute("COMMIT")


def _horizon(connection: psycopg.Connection, config: Config) -> int:
    """Where the log ends by now, as far as a pipeline can read it: no further than where it is flushed or replayed."""
    end = flushed(connection, config)
    row = connection.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_flush_lsn() END::text"
    ).fetchone()
    assert row is not None
    return end if row[0] is None else min(end, parse_lsn(row[0]))


def _native(schema: TableSchema, images: pa.StructArray) -> pa.Table:
    rows = native_rows(schema, images)
    return pa.Table.from_arrays(rows.flatten(), schema=pa.schema(list(rows.type)))
