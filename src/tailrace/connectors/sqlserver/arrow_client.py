"""Reads rows of SQL Server as Arrow columns, by mssql-python; FreeTDS reads where that cannot connect."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa
import pymssql

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_NAMES, DATABASE_PORT
from tailrace.connectors.sql_tables.images import block
from tailrace.connectors.sql_tables.tables import Block, Row
from tailrace.connectors.sqlserver import client
from tailrace.connectors.sqlserver.address import answering, host_of
from tailrace.connectors.sqlserver.encryption import is_compared, is_encrypted
from tailrace.connectors.sqlserver.options import (
    DATABASE_PASSWORD,
    DATABASE_QUERY_TIMEOUT_MS,
    DATABASE_USER,
    DRIVER_APPLICATION_INTENT,
    DRIVER_HOST_NAME_IN_CERTIFICATE,
    DRIVER_LOGIN_TIMEOUT,
    DRIVER_TRUST_STORE,
)
from tailrace.override import override

log = logging.getLogger(__name__)

# The driver in Rust, which needs nothing from the system; who sets the variable has another one.
_PROVIDER = ("MSSQL_PYTHON_NATIVE_PROVIDER", "mssql-odbc")
_FROM_SERVER, _SOURCES = "[SQL Server]", re.compile(r"^(\[[^\]]*\])+")
# FreeTDS's numbers: the answer cannot be read, the connection is dead.
_UNREAD, _DEAD = 20004, 20047
# Bytes of a value in a row.
_LARGEST = 8000
_FIRST_ROWS, _BLOCK_BYTES = 100, 1 << 25
_NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def connect(config: Config, application: str = "tailrace", database: str | None = None) -> client.Connection:
    """A new connection for many rows, see client.connect.

    FreeTDS makes it if driver.trustStore is compared with, as this driver takes no file of trusted certificates.
    """
    if is_compared(config) and config[DRIVER_TRUST_STORE]:
        return client.connect(config, application, database)
    try:
        driver = _driver()
    except ImportError as error:
        return _by_freetds(config, application, database, str(error))
    patience, timeout = config[DRIVER_LOGIN_TIMEOUT], config[DATABASE_QUERY_TIMEOUT_MS]
    try:
        made = driver.connect(_settings(config, database), autocommit=True, timeout=patience)
    except driver.Error as error:
        said = client.reason(config, application, _database(config, database)) if _is_of_server(error) else None
        if said is not None:
            raise said from error
        return _by_freetds(config, application, database, _line(error))
    made.timeout = -(-timeout // 1000)
    return ArrowConnection(made)


def _by_freetds(config: Config, application: str, database: str | None, reason: str) -> client.Connection:
    """The same by FreeTDS, whose errors say what is wrong and whether another attempt may help."""
    made = client.connect(config, application, database)
    _tell(reason)
    return made


@cache
def _tell(reason: str) -> None:
    """Say once in a process why rows are not read by columns."""
    log.warning("rows are read by FreeTDS, which is slower, as mssql-python does not connect: %s", reason)


class ArrowConnection(client.Connection):
    """Implements Connection. Its errors are those of FreeTDS, with the server's numbers."""

    _unread: Any = None
    """The cursor whose answer is not read to its end."""

    @override
    def rows(self, statement: str) -> list[Row]:
        return [tuple(row) for row in super().rows(statement)]

    @override
    def blocks(self, statement: str, size: int) -> Iterator[Block]:
        """A connection whose rows are not read to the end can only be closed."""
        with self._cursor() as cursor:
            cursor.execute(statement)
            self._unread = cursor
            rows = min(size, _FIRST_ROWS)
            fetched = _by_rows if _has_large(cursor) else _by_columns
            while columns := fetched(cursor, rows):
                yield columns
                # The next block has as many rows of these as fit.
                taken = sum(column.nbytes for column in columns)
                rows = max(1, min(size, len(columns[0]) * _BLOCK_BYTES // max(taken, 1)))
            self._unread = None

    @override
    def close(self) -> None:
        """The driver reads what is left of an answer first: nobody waits for that."""
        if self._unread is None:
            self._driver.close()
        else:
            threading.Thread(target=self._driver.close, name="reads an answer's rest", daemon=True).start()

    @contextmanager
    @override
    def _cursor(self) -> Iterator[Any]:
        if self._unread is not None:
            raise pymssql.OperationalError(_DEAD, "the connection's last answer was not read to its end")
        try:
            cursor = self._driver.cursor()
            yield cursor
            if self._unread is None:
                cursor.close()
        except _driver().Error as error:
            raise self._as_freetds(error) from error

    def _as_freetds(self, error: Any) -> pymssql.Error:
        """The driver gives no numbers: the server is queried for its own, which it keeps until the next statement."""
        text = _line(error)
        if _is_of_server(error):
            self._unread = None
            try:
                with self._driver.cursor() as cursor:
                    cursor.execute("SELECT @@ERROR")
                    return pymssql.OperationalError(cursor.fetchone()[0], text)
            except _driver().Error:
                # It was the connection's last word.
                return pymssql.OperationalError(_DEAD, text)
        if isinstance(error, _driver().OperationalError):
            return pymssql.OperationalError(_UNREAD, text)
        return pymssql.DatabaseError(text)


@cache
def _driver() -> Any:
    """The module, which takes 50 ms to import: processes that read no rows do without it."""
    os.environ.setdefault(*_PROVIDER)
    import mssql_python

    # Transactions and levels of isolation of one connection must not meet the next.
    mssql_python.pooling(enabled=False)
    return mssql_python


def _settings(config: Config, database: str | None) -> str:
    host = host_of(config)
    parts = {
        "SERVER": host if "\\" in host else f"{host},{config[DATABASE_PORT]}",
        "DATABASE": _database(config, database),
        "UID": config[DATABASE_USER] or "",
        "PWD": config[DATABASE_PASSWORD] or "",
        "Encrypt": "yes" if is_encrypted(config) else "no",
        "TrustServerCertificate": "no" if is_compared(config) else "yes",
        "HostNameInCertificate": config[DRIVER_HOST_NAME_IN_CERTIFICATE] or "",
        "ApplicationIntent": config[DRIVER_APPLICATION_INTENT] or "ReadWrite",
        # All addresses of a host are tried at once: that of a listener may be in a subnet that does not answer.
        "MultiSubnetFailover": "Yes" if answering(config) is not None else "",
        # An attempt that fails is repeated as the options say, and not at once by the driver.
        "ConnectRetryCount": "0",
    }
    return "".join(f"{name}={{{value.replace('}', '}}')}}};" for name, value in parts.items() if value)


def _database(config: Config, given: str | None) -> str:
    names = config[DATABASE_NAMES]
    return given or (names[0] if len(names) == 1 else "")


def _is_of_server(error: Any) -> bool:
    return _FROM_SERVER in str(error)


def _line(error: Any) -> str:
    """The server's words, without what the driver puts before them."""
    return _SOURCES.sub("", str(getattr(error, "ddbc_error", "") or error)).strip()


def _has_large(cursor: Any) -> bool:
    """Whether a column has values of any size, which the driver describes with a size of 0."""
    return any(kind in (str, bytes) and not 0 < size <= _LARGEST for _, kind, _, size, *_ in cursor.description)


def _by_rows(cursor: Any, size: int) -> Block:
    """Of large values the driver makes columns slower than rows, and holds Python's lock while it waits for them."""
    return block(cursor.fetchmany(size))


def _by_columns(cursor: Any, size: int) -> Block:
    batch = cursor.arrow_batch(size)
    return [_narrow(column) for column in batch.columns] if batch.num_rows else []


def _narrow(column: pa.Array) -> pa.Array:
    kind = _NARROW.get(column.type)
    return column if kind is None else column.cast(kind)
