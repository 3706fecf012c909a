"""Reads a query's rows by text COPY: for small reads, and for types without a binary conversion."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pyarrow as pa
from psycopg import pq, sql
from psycopg.pq.abc import PGresult

from tailrace.config import Config
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.log.protocol import copy_text
from tailrace.connectors.postgres.server.connect import connect, first_line, refused
from tailrace.connectors.postgres.server.silence import await_bytes, begin_copy, end_copy
from tailrace.connectors.postgres.snapshot.blocks import Integers, RowBlock
from tailrace.connectors.postgres.snapshot.exported import adopt
from tailrace.connectors.value_type import converted
from tailrace.errors import SourceError

_CHUNK_BYTES = 4 << 20  # guessed


def blocks(config: Config, snapshot: str, table: CapturedTable, rows: sql.Composable) -> Iterator[RowBlock]:
    """The rows of a table (`rows` follows the SELECT list) under an exported snapshot. Raises SourceError."""
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.schema.columns)
    query = sql.SQL("COPY (SELECT {}{}) TO STDOUT").format(columns, rows)
    with closing(connect(config, application="tailrace snapshot reader")) as connection:
        connection.execute("SET statement_timeout = 0")
        adopt(connection, config, snapshot)
        try:
            for lines in copy_lines(connection, query, str(table.schema.id)):
                yield _block(table, lines)
        except psycopg.OperationalError as error:
            raise refused(str(table.schema.id), first_line(error), error.sqlstate) from error


def _block(table: CapturedTable, lines: list[bytes | memoryview]) -> RowBlock:
    def images(places: Integers) -> pa.StructArray:
        return rows_of(table, lines if len(places) == len(lines) else [lines[at] for at in places], 0)[0]

    return RowBlock(len(lines), hashlib.sha256(b"".join(lines)).digest(), images)


def copy_lines(connection: psycopg.Connection, query: sql.Composed, table: str) -> Iterator[list[bytes | memoryview]]:
    """Lines of a COPY to STDOUT, some megabytes at a time. Raises SourceError, naming the table.

    By the extended protocol, which refuses a second statement: the query may contain text of a user.
    """
    pgconn = connection.pgconn
    result = begin_copy(connection, query.as_bytes(connection), extended=True)
    if result.status != pq.ExecStatus.COPY_OUT:
        raise _refused(table, result)
    lines: list[bytes | memoryview] = []
    size = 0
    while True:
        length, line = pgconn.get_copy_data(1)
        if length < 0:
            break
        if not length:
            await_bytes(connection)
            continue
        lines.append(line)
        size += length
        if size >= _CHUNK_BYTES:
            yield lines
            lines, size = [], 0
    for end in end_copy(connection):
        if end.status != pq.ExecStatus.COMMAND_OK:
            raise _refused(table, end)
    if lines:
        yield lines


def rows_of(table: CapturedTable, lines: list[bytes | memoryview], extra: int) -> tuple[pa.StructArray, list[pa.Array]]:
    """Lines of COPY as row images, and the texts of `extra` more columns that stand behind the table's."""
    schema = table.schema
    buffer, cells = copy_text.cells(lines, len(schema.columns) + extra, str(schema.id))
    texts = [copy_text.unescaped(cell.text(buffer)) for cell in cells]
    arrays = [
        converted(text, kind, f"{schema.id}.{column.name}, snapshot")
        for text, column, kind in zip(texts, schema.columns, table.types, strict=False)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(schema.row_type)), texts[len(arrays) :]


def _refused(table: str, result: PGresult) -> SourceError:
    """What a result says, caused by psycopg's error for it, which tells whether another try is worth it."""
    cause: psycopg.Error = psycopg.errors.error_from_result(result)
    if cause.sqlstate is None:
        cause = psycopg.OperationalError(str(cause))  # the client's own word for a connection that broke
    error = refused(table, first_line(cause), cause.sqlstate)
    error.__cause__ = cause
    return error
