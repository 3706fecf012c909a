"""Reads a table's rows by ADBC: binary COPY, converted to Arrow outside Python.

Its connection is slow to make, as it reads all types and the columns of all tables; its rows take a third of the time.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from adbc_driver_manager._reader import AdbcRecordBatchReader
from adbc_driver_postgresql import StatementOptions, dbapi
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tailrace.config import Config
from tailrace.connectors.ahead import ahead
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.server.connect import (
    connection_error,
    error_of,
    first_line,
    initial_statements,
    parameters,
    patience,
    refused,
)
from tailrace.connectors.postgres.snapshot.blocks import Integers, RowBlock
from tailrace.connectors.postgres.snapshot.exported import adopting, gone
from tailrace.connectors.value_type import converted
from tailrace.model.arrow import indices

_BATCH_BYTES = 4 << 20  # guessed


def blocks(config: Config, snapshot: str, table: CapturedTable, rows: sql.Composable) -> Iterator[RowBlock]:
    """The rows of a table (`rows` follows the SELECT list) under an exported snapshot. Raises SourceError."""
    columns = [
        sql.SQL(kind.binary.select if kind.binary else kind.text).format(sql.Identifier(column.name))
        for column, kind in zip(table.schema.columns, table.types, strict=True)
    ]
    query = sql.SQL("SELECT {}{}").format(sql.SQL(", ").join(columns), rows).as_string()
    # The driver waits in C code, so another thread finds out whether there is anything to wait for.
    application = f"tailrace snapshot reader {uuid.uuid4().hex[:8]}"
    batches = _batches(config, application, snapshot, query, table)
    try:
        for batch in ahead(batches, patience(config, "application_name", application)):
            yield _block(table, batch)
    except psycopg.OperationalError as error:
        raise refused(str(table.schema.id), first_line(error), error.sqlstate) from error


def _batches(
    config: Config, application: str, snapshot: str, query: str, table: CapturedTable
) -> Iterator[pa.RecordBatch]:
    with closing(_connect(config, application)) as connection, connection.cursor() as cursor:
        _adopt(cursor, config, snapshot)
        cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(_BATCH_BYTES)})
        try:
            cursor.execute(query)
            # The reader of fetch_record_batch loses the SQLSTATE of an error in the middle of the rows.
            stream = cursor.fetch_arrow()
            yield from AdbcRecordBatchReader._import_from_c(stream.address)
        except AdbcError as error:
            raise refused(str(table.schema.id), _said(error), error.sqlstate) from _cause(error)


def _block(table: CapturedTable, batch: pa.RecordBatch) -> RowBlock:
    schema = table.schema

    def images(places: Integers) -> pa.StructArray:
        some = batch if len(places) == len(batch) else batch.take(indices(places))
        arrays = [
            converted(values, kind, f"{schema.id}.{column.name}, snapshot", binary=True)
            for values, column, kind in zip(some.columns, schema.columns, table.types, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(schema.row_type))

    return RowBlock(len(batch), _digest(batch), images)


def _digest(batch: pa.RecordBatch) -> bytes:
    digest = hashlib.sha256()
    for buffer in (buffer for column in batch.columns for buffer in column.buffers() if buffer is not None):
        digest.update(buffer)
    return digest.digest()


def _connect(config: Config, application: str) -> dbapi.Connection:
    given = parameters(config, application=application)
    with ExitStack() as opened:
        try:
            connection = opened.enter_context(closing(dbapi.connect(make_conninfo(**given), autocommit=True)))
            with connection.cursor() as cursor:
                for statement in (*initial_statements(config), "SET statement_timeout = 0"):
                    cursor.execute(statement)
        except AdbcError as error:
            raise connection_error(config, error) from _cause(error)
        opened.pop_all()
    return connection


def _adopt(cursor: dbapi.Cursor, config: Config, snapshot: str) -> None:
    try:
        for statement in adopting(snapshot):
            cursor.execute(statement)
    except AdbcError as error:
        raise gone(config, snapshot, _said(error)) from _cause(error)


def _cause(error: AdbcError) -> psycopg.Error:
    """The error as psycopg raises it, which tells whether another try is worth it."""
    # Without a SQLSTATE these are libpq's words for a connection that failed.
    return error_of(error.sqlstate, str(error)) if error.sqlstate else psycopg.OperationalError(str(error))


def _said(error: AdbcError) -> str:
    """What the server said, without what the driver puts around it."""
    details: dict[Any, bytes] = dict(error.details)  # the driver's keys are bytes, whatever its type hints say
    said = details.get(b"PG_DIAG_MESSAGE_PRIMARY")
    return first_line(error) if said is None else said.decode(errors="replace")
