"""Classifies Db2's errors: which pass, which say that a connection is lost, and what each sentence advises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.connectors.db2.cli.columns import TRUNCATED
from tailrace.connectors.db2.cli.library import Db2Error
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.snapshot_ports import Failures
from tailrace.errors import SourceError
from tailrace.override import override

_PREFIX = re.compile(r"^(\[[^\]]*\]\s*)+")
_NO_MECHANISM = 'reason "17"'
LOGIN_FAILED, NO_DATABASE = -30082, (-30061, -1013, -1031)
# The connection is cut, or the instance has ended it.
_LOST = frozenset((-30081, -30080, -1224, -1229, -4499, -1034, -1042))
# Of the library's own errors (-99999) the state alone tells: those of connections, and a request that got no answer.
_LOST_STATES = ("08", "40003")
# A lock that is not had, and a value that was longer by the time it was read.
_LOCKED, _LOCKED_STATES = (-911, -913, -904), ("40001", "57033", TRUNCATED)
# A standby of HADR does not let clients read, or not under this isolation level: it may become the primary.
_STANDBY = (-1776, -1773)
# After IBM's "SQL messages": the server or database starts, is recovered, backed up, quiesced or reorganised, or has
# reached a limit for a while.
_PASSING = frozenset(
    (
        *(-290, -291, -668, -930, -952, -954, -955, -956, -964, -973, -1015, -1032, -1035, -1040, -1117, -1218),
        *(-1226, -1266, -6036, -20157, *_STANDBY),
    )
)
_NO_OBJECT, _NO_RIGHT = "42704", "42501"
_PRIVILEGES = (-551, -552, -4707)
_CONTROL_TABLES = "IBMSNAP"
_REMEDIES = {
    -805: "bind the driver's packages once, on a machine with Db2's bind files: db2 bind @db2cli.lst blocking all "
    "grant public sqlerror continue",
    -818: "bind the driver's packages again: db2 bind @db2cli.lst blocking all grant public sqlerror continue",
    -668: "reason 7: REORG TABLE; reason 1: SET INTEGRITY; reason 3: LOAD ... TERMINATE or RESTART",
    -290: "the table space is being loaded, backed up or restored: MON_GET_TABLESPACE shows its state",
    -952: "raise database.query.timeout.ms, unless somebody has cancelled the statement",
    -954: "raise APPLHEAPSZ or APPL_MEMORY of the database",
    -964: "raise LOGPRIMARY or LOGSECOND of the database, or end the oldest transaction",
    -1015: "RESTART DATABASE recovers the database",
    -1032: "db2start starts the instance",
    -1035: "somebody uses the database alone: end that connection, or wait",
    -1040: "raise MAXAPPLS of the database, or end connections",
    -1117: "ROLLFORWARD DATABASE ... AND STOP ends the restore",
    -20157: "UNQUIESCE DATABASE, or GRANT QUIESCE_CONNECT ON DATABASE TO the user",
    -1773: "connect to the primary: a standby of HADR can be read under UR alone, and has no capture program",
    -1776: "connect to the primary of HADR, or to the address that follows it",
    -1598: "Db2 for z/OS and Db2 for i need a licence of Db2 Connect; `db2connectactivate` stores it on the server",
    -4707: "GRANT USAGE ON WORKLOAD SYSDEFAULTUSERWORKLOAD TO USER ...: the database is RESTRICTIVE",
}
_RESTRICTIVE = (
    "the database is RESTRICTIVE: grant the user SELECT on SYSCAT.TABLES, COLUMNS, INDEXES, INDEXCOLUSE and "
    "DATAPARTITIONS, on SYSIBMADM.DB_HISTORY and on SYSIBM.SYSDUMMY1, and EXECUTE on the packages NULLID.SYS*"
)


class Db2Failures(Failures):
    """Implements Failures."""

    driver_error: type[Exception] = Db2Error

    @override
    def is_transient(self, error: BaseException) -> bool:
        driver_error = driver_error_of(error)
        if not isinstance(driver_error, Db2Error):
            return False
        is_locked = driver_error.code in _LOCKED or driver_error.state in _LOCKED_STATES
        return self.is_lost(error) or is_locked or driver_error.code in _PASSING

    @override
    def is_refused(self, error: BaseException) -> bool:
        """A standby is where the address leads."""
        driver_error = driver_error_of(error)
        return isinstance(driver_error, Db2Error) and driver_error.code in _STANDBY

    @override
    def is_lost(self, error: BaseException) -> bool:
        driver_error = driver_error_of(error)
        if not isinstance(driver_error, Db2Error) or driver_error.code in (LOGIN_FAILED, *NO_DATABASE, *_PASSING):
            return False
        return driver_error.code in _LOST or driver_error.state.startswith(_LOST_STATES)

    @override
    def is_passing(self, error: BaseException) -> bool:
        return self.is_transient(error)

    @override
    def line(self, error: BaseException) -> str:
        """The server's own words."""
        return _PREFIX.sub("", str(driver_error_of(error)).partition("\n")[0]).strip()

    @contextmanager
    @override
    def translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Db2Error as error:
            raise _sentence(error, doing, self.line(error)) from error


FAILURES = Db2Failures()


def is_missing(error: BaseException) -> bool:
    """Whether an object of the statement does not exist."""
    driver_error = driver_error_of(error)
    return isinstance(driver_error, Db2Error) and (driver_error.code == -204 or driver_error.state == _NO_OBJECT)


def _sentence(error: Db2Error, doing: str, line: str) -> SourceError:
    if error.code == LOGIN_FAILED and _NO_MECHANISM in line:
        remedy = "set driver.securityMechanism: 3 sends the password as it is, 9 encrypts it"
        return SourceError(f"the server does not know this way of logging in: {line}", remedy=remedy)
    if error.code == LOGIN_FAILED:
        remedy = "set database.user and database.password to those of a user of the server"
        return SourceError(f"the server refuses the login: {line}", remedy=remedy)
    if error.code in NO_DATABASE:
        return SourceError(f"{doing}: {line}", where="database.dbname", remedy="correct the name of the database")
    if error.code in _REMEDIES:
        return SourceError(f"{doing}: {line}", remedy=_REMEDIES[error.code])
    if FAILURES.is_lost(error):
        remedy = "check database.hostname and database.port, that the server runs, and the firewall"
        return SourceError(f"{doing}: the server cannot be reached: {line}", remedy=remedy)
    if is_missing(error) and _CONTROL_TABLES in str(error).upper():
        remedy = "set cdc.control.schema, or set capture up: docs/connectors/db2.md says how"
        return SourceError(f"{doing}: there are no control tables of SQL Replication: {line}", remedy=remedy)
    if error.state == _NO_RIGHT or error.code in _PRIVILEGES:
        is_restrictive = any(each in line for each in ("SYSCAT.", "SYSIBM.", "NULLID."))
        remedy = "grant the privilege; docs/connectors/db2.md lists what a pipeline's user needs"
        return SourceError(
            f"{doing}: the user lacks the privilege: {line}", remedy=_RESTRICTIVE if is_restrictive else remedy
        )
    return SourceError(f"{doing}: {line}")
