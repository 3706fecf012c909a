"""Opens connections to Db2, runs statements with retries, and translates the server's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import ibm_db

from tailrace.config import Config
from tailrace.connectors.change_tables import dialect
from tailrace.connectors.change_tables.dialect import Block, Row
from tailrace.connectors.change_tables.images import block
from tailrace.connectors.change_tables.server import ReconnectingServer
from tailrace.connectors.db2 import encryption
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.snapshot_ports import Failures
from tailrace.errors import SourceError

T = TypeVar("T")

_CODE = re.compile(r"SQLSTATE=(\w{5})?.*?SQLCODE=(-?\d+)", re.DOTALL)
_PREFIX = re.compile(r"^(\[[^\]]*\]\s*)+")
_NO_MECHANISM = 'reason "17"'
LOGIN_FAILED, NO_DATABASE = -30082, (-30061, -1013, -1031)
# Lock time-out and deadlock: by Db2's codes, and by the state alone.
_LOCKED_CODES, _LOCKED_STATES = (-911, -913, -904), ("40001", "57033")
# The connection is cut or not made, or the server is starting or stopping.
_LOST_CODES = (-30081, -30080, -1224, -1229, -4499, -1042, -1776, -1035, -20157, -99999)
_NO_OBJECT, _NO_RIGHT = "42704", "42501"
# javax.net settings of the reference engine's driver, in the words of this one.
_SECURITY = {
    "3": "AUTHENTICATION=SERVER",
    "4": "AUTHENTICATION=SERVER",
    "7": "AUTHENTICATION=SERVER_ENCRYPT",
    "9": "AUTHENTICATION=SERVER_ENCRYPT",
    "11": "AUTHENTICATION=KERBEROS",
    "13": "AUTHENTICATION=DATA_ENCRYPT",
}


class Db2Error(Exception):
    """What the driver says, which raises plain exceptions: `state` and `code` are those of SQL, 0 for no code."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        found = _CODE.search(text)
        self.state, self.code = (found[1] or "", int(found[2])) if found else ("", 0)


@contextmanager
def _driver_errors() -> Iterator[None]:
    try:
        yield
    except Db2Error:
        raise
    except Exception as error:
        # The driver has no class of its own.
        if type(error) is not Exception:
            raise
        raise Db2Error(str(error)) from error


class Connection(dialect.Connection):
    """Implements Connection. Each statement is committed, unless a transaction was begun."""

    def __init__(self, driver: Any, timeout: int) -> None:
        self._driver, self._timeout = driver, timeout
        # A statement that outlives its connection breaks one of the next connection: they are freed before.
        self._open: list[Any] = []

    def rows(self, statement: str) -> list[Row]:
        """See Connection.rows."""
        with self._executed(statement) as done:
            found: list[Row] = ibm_db.fetchall(done) if ibm_db.num_fields(done) else []
            return found

    def value(self, statement: str) -> Any:
        """See Connection.value."""
        found = self.rows(statement)
        return found[0][0] if found else None

    def names(self, statement: str) -> list[str]:
        """See Connection.names."""
        with self._executed(statement) as done:
            return [ibm_db.field_name(done, place) for place in range(ibm_db.num_fields(done))]

    def run(self, *statements: str) -> None:
        """See Connection.run."""
        for statement in statements:
            with self._executed(statement):
                pass

    def blocks(self, statement: str, size: int) -> Iterator[Block]:
        """See Connection.blocks."""
        with self._executed(statement) as done:
            while found := ibm_db.fetchmany(done, size):
                yield block(found)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Statements that end together, by a rollback."""
        with _driver_errors():
            ibm_db.autocommit(self._driver, ibm_db.SQL_AUTOCOMMIT_OFF)
        try:
            yield
        finally:
            # Of a connection that is cut the server ends the transaction itself.
            with suppress(Db2Error), _driver_errors():
                ibm_db.rollback(self._driver)
                ibm_db.autocommit(self._driver, ibm_db.SQL_AUTOCOMMIT_ON)

    def prepare(self, statement: str) -> None:
        """Have the server parse a statement now, and not when it would be run."""
        with _driver_errors():
            ibm_db.free_stmt(ibm_db.prepare(self._driver, statement, {ibm_db.SQL_ATTR_DEFERRED_PREPARE: 0}))

    def product(self) -> str:
        """Name and version of the server."""
        with _driver_errors():
            server = ibm_db.server_info(self._driver)
        return f"{server.DBMS_NAME} {server.DBMS_VER}"

    def close(self) -> None:
        """See Connection.close."""
        with suppress(Db2Error), _driver_errors():
            for done in self._open:
                ibm_db.free_stmt(done)
            self._open.clear()
            ibm_db.close(self._driver)

    @contextmanager
    def _executed(self, statement: str) -> Iterator[Any]:
        with _driver_errors():
            options = {ibm_db.SQL_ATTR_QUERY_TIMEOUT: self._timeout} if self._timeout else {}
            done = ibm_db.exec_immediate(self._driver, statement, options)
            self._open.append(done)
            try:
                yield done
            finally:
                if done in self._open:
                    self._open.remove(done)
                    ibm_db.free_stmt(done)


class Db2Failures(Failures):
    """Implements Failures."""

    driver_error: type[Exception] = Db2Error

    def is_transient(self, error: BaseException) -> bool:
        """See Failures.is_transient."""
        found = driver_error_of(error)
        return self.is_lost(error) or (isinstance(found, Db2Error) and _is_locked(found))

    def is_lost(self, error: BaseException) -> bool:
        """See Failures.is_lost."""
        found = driver_error_of(error)
        if not isinstance(found, Db2Error) or found.code in (LOGIN_FAILED, *NO_DATABASE):
            return False
        return found.code in _LOST_CODES or found.state.startswith("08") or "Connection is not active" in str(found)

    def is_passing(self, error: BaseException) -> bool:
        """See Failures.is_passing."""
        return self.is_transient(error)

    def line(self, error: BaseException) -> str:
        """See Failures.line: the server's own words."""
        return _PREFIX.sub("", str(driver_error_of(error)).partition("\n")[0]).strip()

    @contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """See Failures.translated."""
        try:
            yield
        except Db2Error as error:
            raise _sentence(error, doing, self.line(error)) from error


FAILURES = Db2Failures()


def connect(config: Config, application: str = "tailrace") -> Connection:
    """A new connection. Raises Db2Error, and SourceError where encryption is what is wrong."""
    encryption.check_files(config)
    try:
        return _connected(config, application)
    except Db2Error as error:
        is_about_it = config.flag("driver.sslConnection") or FAILURES.is_lost(error)
        refused = encryption.refusal(config, str(error), error.code) if is_about_it else None
        if refused is None:
            raise
        # Another try would be refused, too: the driver's error behind it would say that it might not.
        raise refused from None


def _connected(config: Config, application: str) -> Connection:
    parts = {
        "DATABASE": config.text("database.dbname"),
        "HOSTNAME": config.text("database.hostname"),
        "PORT": str(config.number("database.port")),
        "PROTOCOL": "TCPIP",
        "UID": config.optional("database.user") or "",
        "PWD": config.optional("database.password") or "",
        "CONNECTTIMEOUT": str(config.number("driver.loginTimeout")),
        # LOBs come with their rows; locators cost a round trip each.
        "LONGDATACOMPAT": "1",
        "PROGRAMNAME": application[:80],
    }
    settings = [f"{name}={_quoted(value)}" for name, value in parts.items()]
    mechanism = config.optional("driver.securityMechanism")
    if mechanism:
        settings.append(_SECURITY[mechanism])
    if config.flag("driver.sslConnection"):
        settings.append("SECURITY=SSL")
    certificate = config.optional("driver.sslCertLocation")
    if certificate:
        settings.append(f"SSLSERVERCERTIFICATE={_quoted(certificate)}")
    timeout = config.number("database.query.timeout.ms")
    with _driver_errors():
        return Connection(ibm_db.connect(";".join(settings) + ";", "", ""), -(-timeout // 1000))


def _quoted(value: str) -> str:
    """A value of a connection string; braces keep a semicolon from ending it."""
    return "{" + value.replace("}", "}}") + "}" if set(value) & set(";{}=' ") else value


class Server(ReconnectingServer[Connection]):
    """Db2 as the planner and commands use it; see ReconnectingServer."""

    def __init__(self, config: Config, application: str = "tailrace planner") -> None:
        super().__init__(config, FAILURES, lambda: connect(config, application))


def _is_locked(error: Db2Error) -> bool:
    return error.code in _LOCKED_CODES or error.state in _LOCKED_STATES


def _sentence(error: Db2Error, doing: str, line: str) -> SourceError:
    if error.code == LOGIN_FAILED and _NO_MECHANISM in line:
        remedy = "set driver.securityMechanism: 3 sends the password as it is, 9 encrypts it"
        return SourceError(f"the server does not know this way of logging in: {line}", remedy=remedy)
    if error.code == LOGIN_FAILED:
        remedy = "set database.user and database.password to those of a user of the server"
        return SourceError(f"the server refuses the login: {line}", remedy=remedy)
    if error.code in NO_DATABASE:
        return SourceError(f"{doing}: {line}", where="database.dbname", remedy="correct the name of the database")
    if FAILURES.is_lost(error):
        remedy = "check database.hostname and database.port, that the server runs, and the firewall"
        return SourceError(f"{doing}: the server cannot be reached: {line}", remedy=remedy)
    if error.state == _NO_OBJECT and "IBMSNAP" in str(error).upper():
        remedy = "set cdc.control.schema, or set capture up: docs/connectors/db2.md says how"
        return SourceError(f"{doing}: there are no control tables of SQL Replication: {line}", remedy=remedy)
    if error.state == _NO_RIGHT or error.code in (-551, -552):
        remedy = "grant the privilege; docs/connectors/db2.md lists what a pipeline's user needs"
        return SourceError(f"{doing}: the user lacks the privilege: {line}", remedy=remedy)
    return SourceError(f"{doing}: {line}")
