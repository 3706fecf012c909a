"""Opens connections to SQL Server, runs statements with retries, and translates the server's errors."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pymssql
from pymssql import _mssql

from tailrace.config import Config
from tailrace.connectors.change_tables import dialect
from tailrace.connectors.change_tables.dialect import Block, Row
from tailrace.connectors.change_tables.images import block
from tailrace.connectors.change_tables.server import ReconnectingServer
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.snapshot_ports import Failures
from tailrace.connectors.sqlserver.encryption import is_compared, is_encrypted, refusal, settings
from tailrace.errors import SourceError

T = TypeVar("T")

LOGIN_FAILED, NO_DATABASE = 18456, (911, 4060)
NO_OBJECT, NO_RIGHT, LOCK_TIMEOUT = (208, 313), (229, 230, 262, 297, 300, 916, 22902, 22904), 1222
# Of the server: starting, shutting down, deadlock, out of memory; of the driver: the connection was cut or not made.
_TRANSIENT = frozenset((1205, 701, 6005, 17142, 18401, 40197, 40501, 40613, 49918, 49919, 49920, 10928, 10929))
_DEAD = frozenset((20002, 20003, 20004, 20006, 20009, 20017, 20047))
# What the driver says, without a number, of a connection that was lost before.
_CUT = ("Not connected", "Connection is closed", "Could not set connection properties")
_REFUSED = ("certificate", "TLS", "SSL")
_OF_THE_DRIVER = re.compile(r"DB-Lib error message (\d+)")
_FILE, _ENVIRONMENT = "FREETDSCONF", threading.Lock()


class Connection(dialect.Connection):
    """Implements Connection over a driver of Python's DB API. Each statement is committed."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.databases: dict[str, str] = {}
        """The names of databases as the server writes them, by the configured ones."""

    def rows(self, statement: str) -> list[Row]:
        """See Connection.rows."""
        with self._cursor() as cursor:
            cursor.execute(statement)
            found: list[Row] = cursor.fetchall() if cursor.description else []
            return found

    def value(self, statement: str) -> Any:
        """See Connection.value."""
        found = self.rows(statement)
        return found[0][0] if found else None

    def names(self, statement: str) -> list[str]:
        """See Connection.names."""
        with self._cursor() as cursor:
            cursor.execute(statement)
            return [name for name, *_ in cursor.description]

    def run(self, *statements: str) -> None:
        """See Connection.run."""
        with self._cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def blocks(self, statement: str, size: int) -> Iterator[Block]:
        """See Connection.blocks."""
        with self._cursor() as cursor:
            cursor.execute(statement)
            while found := cursor.fetchmany(size):
                yield block(found)

    def close(self) -> None:
        """See Connection.close."""
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


class SqlServerFailures(Failures):
    """Implements Failures."""

    driver_error: type[Exception] = pymssql.Error

    def is_transient(self, error: BaseException) -> bool:
        """See Failures.is_transient."""
        number, text = number_of(error), str(driver_error_of(error))
        if number == LOGIN_FAILED or any(sign in text for sign in _REFUSED):
            return False
        # A failed login, and a database that is away, come with the driver's number for a connection not made.
        is_reported = any(f"({each}," in text for each in (LOGIN_FAILED, *NO_DATABASE))
        return not is_reported and (number in _TRANSIENT or self.is_lost(error))

    def is_lost(self, error: BaseException) -> bool:
        """See Failures.is_lost."""
        number = number_of(error)
        return number in _DEAD or (number is None and str(driver_error_of(error)).startswith(_CUT))

    def is_passing(self, error: BaseException) -> bool:
        """See Failures.is_passing."""
        return self.is_transient(error) or number_of(error) == LOCK_TIMEOUT

    def line(self, error: BaseException) -> str:
        """See Failures.line: the server's own words."""
        text = _text(error)
        return text.partition("DB-Lib error")[0].strip().partition("\n")[0] or text.strip().partition("\n")[0]

    @contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """See Failures.translated."""
        try:
            yield
        except pymssql.Error as error:
            raise _sentence(error, doing, self.line(error)) from error


FAILURES = SqlServerFailures()


def connect(config: Config, application: str = "tailrace", database: str | None = None) -> Connection:
    """A new connection, to the given database or to the only one.

    Raises pymssql.Error, and SourceError where encryption is what is wrong.
    """
    names = config.names("database.names")
    wanted = database or (names[0] if len(names) == 1 else "")
    timeout = config.number("database.query.timeout.ms")
    with _refusals(config), _public_errors(), _settings(config):
        driver = pymssql.connect(
            server=_address(config),
            user=config.optional("database.user") or "",
            password=config.optional("database.password") or "",
            database=wanted,
            port=str(config.number("database.port")),
            timeout=-(-timeout // 1000),
            login_timeout=max(1, config.number("driver.loginTimeout")),
            charset="UTF-8",
            appname=application[:128],
            tds_version="7.4",
            autocommit=True,
            encryption="require" if is_encrypted(config) else "request",
            read_only=_is_read_only(config),
        )
    return Connection(driver)


@contextmanager
def _settings(config: Config) -> Iterator[None]:
    """FreeTDS's settings for a connection: it takes them from a file that the environment names."""
    if not is_compared(config):
        yield
        return
    with _ENVIRONMENT, settings(config) as path:
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
def _refusals(config: Config) -> Iterator[None]:
    """Turn an encrypted connection that encryption has failed into a SourceError that says why."""
    try:
        yield
    except pymssql.Error as error:
        refused = refusal(config) if is_encrypted(config) and FAILURES.is_lost(error) else None
        if refused is None:
            raise
        # Another try would be refused, too: the driver's error behind it would say that it might not.
        raise refused from None


def _address(config: Config) -> str:
    """Host, and instance unless a port is given, which decides then."""
    host, instance = config.text("database.hostname"), config.optional("database.instance")
    return f"{host}\\{instance}" if instance and "database.port" not in config.given else host


def _is_read_only(config: Config) -> bool:
    return (config.optional("driver.applicationIntent") or "").lower() == "readonly"


class Server(ReconnectingServer[Connection]):
    """SQL Server as the planner and commands use it; see ReconnectingServer."""

    def __init__(self, config: Config, application: str = "tailrace planner") -> None:
        super().__init__(config, FAILURES, lambda: connect(config, application))


def number_of(error: BaseException) -> int | None:
    """The number of an error of the server or of the driver."""
    own = _OF_THE_DRIVER.match(_text(error))
    if own and int(own[1]) in _DEAD:
        # The number beside it may be that of an earlier connection's error, which the driver keeps.
        return int(own[1])
    found = driver_error_of(error).args
    number = found[0] if found else None
    if isinstance(number, tuple):
        number = number[0]
    return number if isinstance(number, int) else None


def _text(error: BaseException) -> str:
    found = driver_error_of(error)
    said = found.args[1] if len(found.args) > 1 else found.args[0] if found.args else found
    if isinstance(said, tuple):
        said = said[-1]
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _sentence(error: BaseException, doing: str, line: str) -> SourceError:
    number, text = number_of(error), str(error)
    if number == LOGIN_FAILED or "Login failed" in text:
        remedy = "set database.user and database.password to a login of the server"
        return SourceError(f"the server refuses the login: {line}", remedy=remedy)
    if number in NO_DATABASE or "Cannot open database" in text:
        remedy = "check database.names, and that the login is a user of each of these databases"
        return SourceError(f"{doing}: {line}", where="database.names", remedy=remedy)
    if FAILURES.is_lost(error):
        remedy = "check database.hostname and database.port, that the server runs, and the firewall"
        return SourceError(f"{doing}: the server cannot be reached: {line}", remedy=remedy)
    if number in NO_OBJECT and "cdc." in text:
        remedy = "USE the database; EXEC sys.sp_cdc_enable_db; then sys.sp_cdc_enable_table for each table"
        return SourceError(f"{doing}: change data capture is not enabled: {line}", remedy=remedy)
    if number in NO_RIGHT:
        remedy = "grant the privilege; docs/connectors/sqlserver.md lists what a pipeline's user needs"
        return SourceError(f"{doing}: the user lacks the privilege: {line}", remedy=remedy)
    return SourceError(f"{doing}: {line}")
