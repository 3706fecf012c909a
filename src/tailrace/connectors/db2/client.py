"""Opens connections to Db2 over IBM's CLI library, and runs statements."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import c_void_p
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME, DATABASE_HOSTNAME, DATABASE_PORT
from tailrace.connectors.db2 import encryption
from tailrace.connectors.db2.cli import columns as results
from tailrace.connectors.db2.cli import library as cli
from tailrace.connectors.db2.cli.columns import ResultColumn
from tailrace.connectors.db2.cli.library import Db2Error
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.db2.options import (
    DATABASE_PASSWORD,
    DATABASE_QUERY_TIMEOUT_MS,
    DATABASE_USER,
    DB2_PLATFORM,
    DRIVER_LOGIN_TIMEOUT,
    DRIVER_SECURITY_MECHANISM,
    DRIVER_SSL_CERT_LOCATION,
    DRIVER_SSL_CONNECTION,
    ZOS,
)
from tailrace.connectors.sql_tables import tables
from tailrace.connectors.sql_tables.server import ReconnectingServer
from tailrace.connectors.sql_tables.tables import Block, Row
from tailrace.errors import SourceError
from tailrace.override import override

# javax.net settings of the reference engine's driver, in the words of this one.
_SECURITY = {
    "3": "AUTHENTICATION=SERVER",
    "4": "AUTHENTICATION=SERVER",
    "7": "AUTHENTICATION=SERVER_ENCRYPT",
    "9": "AUTHENTICATION=SERVER_ENCRYPT",
    "11": "AUTHENTICATION=KERBEROS",
    "13": "AUTHENTICATION=DATA_ENCRYPT",
}
# The library's numbers of isolation levels.
_LEVELS = {"UR": 1, "CS": 2, "RS": 4}
# Rows of a fetch where all are wanted at once.
_FETCHED = 1000
LARGEST = 128 << 20
"""Bytes of the largest value that is read: reading it takes several times as much memory."""


class Connection(tables.Connection):
    """Implements Connection. Each statement is committed, unless a transaction was begun."""

    def __init__(self, connection: c_void_p, timeout: int, *, is_zos: bool = False) -> None:
        self._connection, self._timeout, self.is_zos = connection, timeout, is_zos
        # A statement that outlives its connection breaks one of the next connection: they are freed before.
        self._open: dict[int, c_void_p] = {}

    @override
    def rows(self, statement: str) -> list[Row]:
        return [row for block in self.blocks(statement, _FETCHED) for row in results.as_rows(block)]

    @override
    def value(self, statement: str) -> Any:
        rows = self.rows(statement)
        return rows[0][0] if rows else None

    @override
    def names(self, statement: str) -> list[str]:
        with self._executed(statement) as done:
            return [column.name for column in results.described(done)]

    @override
    def run(self, *statements: str) -> None:
        for statement in statements:
            with self._executed(statement):
                pass

    @override
    def blocks(self, statement: str, size: int) -> Iterator[Block]:
        """Raises SourceError for a value that is too large."""
        with self._executed(statement) as done:
            columns = results.described(done)
            if columns:
                yield from results.blocks(done, columns, size, self._largest(statement, columns))

    def _largest(self, statement: str, columns: Sequence[ResultColumn]) -> list[int]:
        """The bytes that values of each large column take at most. Raises SourceError where they are too large."""
        query = results.longest(statement, columns)
        sizes = iter(self.rows(query)[0] if query else ())
        lengths = [int(next(sizes) or 0) if column.is_large else 0 for column in columns]
        for column, length in zip(columns, lengths, strict=True):
            if length > LARGEST:
                raise SourceError(
                    f"a value has a length of {length:,}, and {LARGEST:,} bytes is the largest that is read",
                    where=f"column {column.name}",
                    remedy="leave the column out by column.exclude.list",
                )
        return [results.room(column, length) for column, length in zip(columns, lengths, strict=True)]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Statements that end together, by a rollback."""
        self._commit_each(False)
        try:
            yield
        finally:
            # Of a connection that is cut the server ends the transaction itself.
            with suppress(Db2Error):
                cli.roll_back(self._connection)
                self._commit_each(True)

    def isolate(self, level: str) -> None:
        """Read at an isolation level of Db2 from now on. Db2 for z/OS has it by the driver's packages alone."""
        if self.is_zos:
            number = _LEVELS[level]
            cli.call("SQLSetConnectAttr", cli.CONNECTION, self._connection, cli.ATTR_TXN_ISOLATION, number, 0)
        else:
            self.run(f"SET CURRENT ISOLATION = {level}")

    def _commit_each(self, yes: bool) -> None:
        cli.call("SQLSetConnectAttr", cli.CONNECTION, self._connection, cli.ATTR_AUTOCOMMIT, int(yes), 0)

    def prepare(self, statement: str) -> None:
        """Have the server parse a statement now, and not when it would be run."""
        with self._statement() as made:
            cli.prepared(made, statement)

    def product(self) -> tuple[str, str]:
        """Name and version of the server."""
        name, version = (cli.info(self._connection, each).decode() for each in (cli.DBMS_NAME, cli.DBMS_VERSION))
        return name, version

    def code_page(self) -> int:
        """The code page of the texts that the library gives."""
        return int.from_bytes(cli.info(self._connection, cli.APPLICATION_CODEPAGE)[:4], sys.byteorder)

    @override
    def close(self) -> None:
        for made in list(self._open.values()):
            self._free(made)
        if self._connection:
            cli.close_connection(self._connection)
            self._connection = c_void_p()

    @contextmanager
    def _executed(self, statement: str) -> Iterator[c_void_p]:
        with self._statement() as made:
            if self._timeout:
                cli.call("SQLSetStmtAttr", cli.STATEMENT, made, cli.ATTR_QUERY_TIMEOUT, self._timeout, 0)
            cli.executed(made, statement)
            yield made

    @contextmanager
    def _statement(self) -> Iterator[c_void_p]:
        if not self._connection:
            raise Db2Error("Connection is not active", "08003")
        made = cli.handle(cli.STATEMENT, self._connection)
        self._open[made.value or 0] = made
        try:
            yield made
        finally:
            self._free(made)

    def _free(self, made: c_void_p) -> None:
        if self._open.pop(made.value or 0, None) is not None:
            cli.library().SQLFreeHandle(cli.STATEMENT, made)


def connect(config: Config, application: str = "tailrace") -> Connection:
    """A new connection. Raises Db2Error, and SourceError where encryption is what is wrong."""
    encryption.check_files(config)
    try:
        return _connected(config, application)
    except Db2Error as error:
        is_about_it = config[DRIVER_SSL_CONNECTION] or FAILURES.is_lost(error)
        refused = encryption.refusal(config, str(error), error.code) if is_about_it else None
        if refused is None:
            raise
        # Another try would be refused, too: the driver's error behind it would say that it might not.
        raise refused from None


def _connected(config: Config, application: str) -> Connection:
    parts = {
        "DATABASE": config[DATABASE_DBNAME],
        "HOSTNAME": config[DATABASE_HOSTNAME],
        "PORT": str(config[DATABASE_PORT]),
        "PROTOCOL": "TCPIP",
        "UID": config[DATABASE_USER] or "",
        "PWD": config[DATABASE_PASSWORD] or "",
        "CONNECTTIMEOUT": str(config[DRIVER_LOGIN_TIMEOUT]),
        "PROGRAMNAME": application[:80],
    }
    settings = [f"{name}={_quoted(value)}" for name, value in parts.items()]
    mechanism = config[DRIVER_SECURITY_MECHANISM]
    if mechanism:
        settings.append(_SECURITY[mechanism])
    if config[DRIVER_SSL_CONNECTION]:
        settings.append("SECURITY=SSL")
    certificate = config[DRIVER_SSL_CERT_LOCATION]
    if certificate:
        settings.append(f"SSLSERVERCERTIFICATE={_quoted(certificate)}")
    timeout = config[DATABASE_QUERY_TIMEOUT_MS]
    is_zos = config[DB2_PLATFORM] == ZOS
    made = Connection(cli.open_connection(";".join(settings) + ";"), -(-timeout // 1000), is_zos=is_zos)
    page = made.code_page()
    if page != cli.UTF8:
        made.close()
        raise SourceError(
            f"IBM's CLI library gives texts in code page {page}",
            remedy=f"set the environment variable DB2CODEPAGE={cli.UTF8} before the program starts",
        )
    return made


def _quoted(value: str) -> str:
    """A value of a connection string; braces keep a semicolon from ending it."""
    return "{" + value.replace("}", "}}") + "}" if set(value) & set(";{}=' ") else value


class Server(ReconnectingServer[Connection]):
    """Db2 as the planner and commands use it; see ReconnectingServer."""

    def __init__(self, config: Config, application: str = "tailrace planner") -> None:
        super().__init__(config, FAILURES, lambda: connect(config, application))
