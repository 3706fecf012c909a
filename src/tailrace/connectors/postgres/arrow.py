"""A query's rows as Arrow, by the Arrow project's driver: COPY in binary form, read and transposed outside Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from adbc_driver_postgresql import StatementOptions, dbapi
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tailrace.config import Config
from tailrace.connectors.postgres.connect import (
    connection_error,
    first_line,
    initial_statements,
    parameters,
    refused,
)
from tailrace.connectors.postgres.export import adopting, gone

_BATCH_BYTES = 4 << 20


def batches(config: Config, snapshot: str, query: sql.Composable, table: str) -> Iterator[pa.RecordBatch]:
    """The rows under an exported snapshot, some megabytes at a time. Raises SourceError, naming the table."""
    with closing(_connect(config)) as connection, connection.cursor() as cursor:
        _adopt(cursor, snapshot)
        cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(_BATCH_BYTES)})
        try:
            cursor.execute(query.as_string())
            yield from cursor.fetch_record_batch()
        except (AdbcError, OSError) as error:
            raise refused(table, _said(error)) from error


def _connect(config: Config) -> dbapi.Connection:
    given = parameters(config, application="tailrace snapshot reader")
    try:
        connection = dbapi.connect(make_conninfo(**given), autocommit=True)
        with connection.cursor() as cursor:
            for statement in initial_statements(config):
                cursor.execute(statement)
            cursor.execute("SET statement_timeout = 0")
    except AdbcError as error:
        raise connection_error(config, error) from error
    return connection


def _adopt(cursor: dbapi.Cursor, snapshot: str) -> None:
    try:
        for statement in adopting(snapshot):
            cursor.execute(statement)
    except AdbcError as error:
        raise gone(snapshot, _said(error)) from error


def _said(error: Exception) -> str:
    """What the server said, without what the driver puts around it."""
    return first_line(error).rpartition("ERROR:")[2].strip()
