"""Opens connections to SQL Server by FreeTDS, and runs statements."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymssql
from pymssql import _mssql

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_HOSTNAME, DATABASE_NAMES, DATABASE_PORT
from tailrace.connectors.sql_tables import tables
from tailrace.connectors.sql_tables.images import block
from tailrace.connectors.sql_tables.server import ReconnectingServer
from tailrace.connectors.sql_tables.tables import Block, Row
from tailrace.connectors.sqlserver.address import answering, host_of
from tailrace.connectors.sqlserver.encryption import errors_of_login, is_compared, is_encrypted, refusal, settings
from tailrace.connectors.sqlserver.failures import FAILURES, LOGIN_FAILED, NOT_CONNECTED, is_refused_by_server
from tailrace.connectors.sqlserver.options import (
    DATABASE_PASSWORD,
    DATABASE_QUERY_TIMEOUT_MS,
    DATABASE_USER,
    DRIVER_APPLICATION_INTENT,
    DRIVER_LOGIN_TIMEOUT,
)
from tailrace.connectors.sqlserver.tds import Login
from tailrace.override import override

_FILE, _ENVIRONMENT = "FREETDSCONF", threading.Lock()


class Connection(tables.Connection):
    """Implements Connection over a driver of Python's DB API. Each statement is committed."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.databases: dict[str, str] = {}
        """The names of databases as the server writes them, by the configured ones."""

    @override
    def rows(self, statement: str) -> list[Row]:
        with self._cursor() as cursor:
            cursor.execute(statement)
            rows: list[Row] = cursor.fetchall() if cursor.description else []
            return rows

    @override
    def value(self, statement: str) -> Any:
        rows = self.rows(statement)
        return rows[0][0] if rows else None

    @override
    def names(self, statement: str) -> list[str]:
        with self._cursor() as cursor:
            cursor.execute(statement)
            return [name for name, *_ in cursor.description]

    @override
    def run(self, *statements: str) -> None:
        with self._cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    @override
    def blocks(self, statement: str, size: int) -> Iterator[Block]:
        with self._cursor() as cursor:
            cursor.execute(statement)
            while rows := cursor.fetchmany(size):
                yield block(rows)

    @override
    def close(self) -> None:
        self._driver.close()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor."""
        with _public_errors(), self._driver.cursor() as cursor:
            yield cursor


@contextmanager
def _public_errors() -> Iterator[None]:
    """When a connection is cut, the driver raises errors of its lower half as well, which are no pymssql.Error."""
    try:
        yield
    except _mssql.MSSQLException as error:
        raise pymssql.OperationalError(*error.args) from error


def connect(config: Config, application: str = "tailrace", database: str | None = None) -> Connection:
    """A new connection, to the given database or to the only one.

    Raises pymssql.Error, and SourceError where encryption is what is wrong.
    """
    names = config[DATABASE_NAMES]
    wanted = database or (names[0] if len(names) == 1 else "")
    timeout = config[DATABASE_QUERY_TIMEOUT_MS]
    with _refusals(config, application, wanted), _public_errors(), _settings(config):
        driver = pymssql.connect(
            server=host_of(config),
            user=config[DATABASE_USER] or "",
            password=config[DATABASE_PASSWORD] or "",
            database=wanted,
            port=str(config[DATABASE_PORT]),
            timeout=-(-timeout // 1000),
            login_timeout=max(1, config[DRIVER_LOGIN_TIMEOUT]),
            charset="UTF-8",
            appname=application[:128],
            tds_version="7.4",
            autocommit=True,
            encryption="require" if is_encrypted(config) else "request",
            read_only=is_read_only(config),
        )
    return Connection(driver)


@contextmanager
def _settings(config: Config) -> Iterator[None]:
    """FreeTDS's settings for a connection: it takes them from a file that the environment names."""
    address = answering(config)
    if address is None and not is_compared(config):
        yield
        return
    with _ENVIRONMENT, settings(config, address) as path:
        before = os.environ.get(_FILE)
        os.environ[_FILE] = path
        try:
            yield
        finally:
            if before is None:
                del os.environ[_FILE]
            else:
                os.environ[_FILE] = before


@contextmanager
def _refusals(config: Config, application: str, database: str) -> Iterator[None]:
    """Find out why a connection was not made, where FreeTDS does not tell: by encryption, or by the server's words."""
    try:
        yield
    except pymssql.Error as error:
        refused = refusal(config) if is_encrypted(config) and FAILURES.is_lost(error) else None
        if refused is not None:
            # Another try would be refused, too: the driver's error behind it would say that it might not.
            raise refused from None
        if not is_refused_by_server(error):
            raise
        said = reason(config, application, database)
        # Without one the server takes the login by now, or is out of reach: another attempt will tell.
        raise said or pymssql.OperationalError(NOT_CONNECTED, FAILURES.line(error)) from error


def reason(config: Config, application: str, database: str) -> pymssql.Error | None:
    """The error with which the server refuses a login, as a login of one's own finds it; None if it does not.

    FreeTDS tells of the first error, and pymssql gives it the number and the words of earlier ones: it keeps the most
    severe message of all connections that were not made.
    """
    login = Login(
        server=config[DATABASE_HOSTNAME],
        user=config[DATABASE_USER] or "",
        password=config[DATABASE_PASSWORD] or "",
        database=database,
        application=application[:128],
        is_read_only=is_read_only(config),
    )
    errors = errors_of_login(config, login)
    if not errors:
        return None
    # The reason comes first, then that the login has failed.
    error = next((each for each in errors if each.number != LOGIN_FAILED), errors[0])
    return pymssql.OperationalError(error.number, error.text)


def is_read_only(config: Config) -> bool:
    """Whether the connection says that it only reads, so that a readable replica may answer it."""
    return (config[DRIVER_APPLICATION_INTENT] or "").lower() == "readonly"


class Server(ReconnectingServer[Connection]):
    """SQL Server as the planner and commands use it; see ReconnectingServer."""

    def __init__(self, config: Config, application: str = "tailrace planner") -> None:
        super().__init__(config, FAILURES, lambda: connect(config, application))
