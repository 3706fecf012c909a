"""Connections to the database of a replica: transactions over one that is kept for a while, rows as Arrow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeAlias

import psycopg
import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from adbc_driver_manager._reader import AdbcRecordBatchReader
from adbc_driver_postgresql import StatementOptions, dbapi
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tailrace.errors import ConfigError
from tailrace.sinks.replica.postgres.errors import is_gone, translating
from tailrace.sinks.replica.table import LakeError, LostRaceError

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

# Of each transaction, as a pooler may give the next one another session. What the role or the database sets does not
# change how a value's text is read, and ends no statement that takes long. A reader that holds a lock is waited for.
_SETTINGS = {
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "client_min_messages": "warning",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "30s",
}
# A host that is gone is given up after about a minute.
_DEFAULTS = {
    "application_name": "tailrace replica",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
# Servers and firewalls cut connections that are idle for minutes.
_IDLE_S = 60.0
_BATCH_BYTES = 4 << 20
_idle: dict[tuple[int, str], list[tuple[float, Connection]]] = {}


def conninfo(options: Mapping[str, str], **more: str) -> str:
    """libpq's connection text of `url` and `password`. Raises ConfigError, never with a secret."""
    secret = {name: text for name, text in options.items() if name == "password" and text}
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(options["url"]).items()}
        return make_conninfo("", **{**_DEFAULTS, **given, **secret, "client_encoding": "UTF8", **more})
    except psycopg.ProgrammingError:
        # The driver's message quotes the part that it cannot read, which may be the password.
        raise ConfigError(
            "cannot be read, or has a parameter that libpq does not have",
            where="sink.replica.url",
            remedy="write postgresql://user@host:5432/database?sslmode=verify-full, with characters such as @ : / ? % "
            "of a password as %40 and so on; or set `password`",
        ) from None


@contextmanager
def transaction(text: str) -> Iterator[Connection]:
    """A transaction over an idle connection of this process, or over a new one; the connection ends if it fails."""
    key = (os.getpid(), text)
    with translating():
        connection = _begun(_taken(key)) or _opened(text)
        try:
            yield connection
            connection.commit()
        except BaseException:
            connection.close()
            raise
    _idle.setdefault(key, []).append((time.monotonic(), connection))


def batches(text: str, query: str) -> Iterator[pa.RecordBatch]:
    """The rows of a query, over a connection of their own. Raises LostRaceError for a table that was altered."""
    with _at_once(), translating(), closing(dbapi.connect(text)) as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(_BATCH_BYTES)})
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(query)
        # The reader of fetch_record_batch loses the SQLSTATE of an error in the middle of the rows.
        stream = cursor.fetch_arrow()
        yield from AdbcRecordBatchReader._import_from_c(stream.address)


@contextmanager
def _at_once() -> Iterator[None]:
    try:
        yield
    except LakeError as error:
        if isinstance(error.__cause__, psycopg.Error | AdbcError) and is_gone(error.__cause__):
            raise LostRaceError(f"the table was altered meanwhile: {error}") from error
        raise


def _opened(text: str) -> Connection:
    connection = psycopg.connect(text, prepare_threshold=None)
    _begin(connection)
    return connection


def _begun(connection: Connection | None) -> Connection | None:
    """The connection in a transaction with our settings; None for one that the server has ended meanwhile."""
    if connection is None:
        return None
    try:
        _begin(connection)
    except psycopg.OperationalError:
        connection.close()
        return None
    return connection


def _begin(connection: Connection) -> None:
    settings = sql.SQL(", ").join(
        sql.SQL("set_config({}, {}, true)").format(name, value) for name, value in _SETTINGS.items()
    )
    connection.execute(sql.SQL("SELECT {}").format(settings))


def _taken(key: tuple[int, str]) -> Connection | None:
    """The newest idle connection that the server has not ended; all that are idle for long are closed."""
    now, fresh = time.monotonic(), []
    for since, connection in _idle.pop(key, []):
        if now - since < _IDLE_S and not connection.closed:
            fresh.append((since, connection))
        else:
            connection.close()
    taken = fresh.pop()[1] if fresh else None
    _idle[key] = fresh
    return taken
