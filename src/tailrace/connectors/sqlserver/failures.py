"""Classifies SQL Server's errors: which pass, which say that a connection is lost, and what each sentence advises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pymssql

from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.snapshot_ports import Failures
from tailrace.errors import SourceError
from tailrace.override import override

LOGIN_FAILED = 18456
_NO_RANGE = 313  # of the functions of change data capture
NO_OBJECT = 208
_NO_RIGHT = (229, 230, 262, 297, 300, 371, 916, 22902, 22904)
# A database that a login cannot open: it is being recovered, restored or moved to another node, or it does not exist,
# is set offline, may not be read there, or not by this login. Only a connection that was made before tells.
_NOT_OPEN = frozenset((911, 926, 942, 945, 976, 978, 4060, 4064))
# After Microsoft's "Database Engine events and errors" and "Troubleshoot connectivity issues" of Azure SQL Database.
_PASSING = frozenset(
    (
        # The server starts, shuts down, is paused, or is updated.
        *(596, 904, 6001, 6002, 6005, 17142, 17147, 17148, 17187, 17197, 17830, 18400, 18401, 18451, 18461),
        # The database starts, is recovered or restored, or its replica has no role.
        *(615, 617, 908, 921, 922, 923, 924, 927, 928, 952, 955, 956, 958, 979, 982, 983, 984, 988, 4221),
        # Azure reconfigures it, or it is busy.
        *(10928, 10929, 10936, 40020, 40143, 40166, 40197, 40501, 40540, 40613, 42108, 42109, 49918, 49919, 49920),
        # Locks, latches, memory, disk space, versions of rows; a scan under others' changes.
        *(601, 701, 802, 845, 1101, 1105, 1203, 1204, 1205, 1221, 1222, 3958, 3959, 3960, 3961, 3966, 3967, 3980),
        *(8628, 8645, 8651, 8657, 9002, 41301, 41302, 41305, 41325, 41823, 41839, 41840),
        # The network, in the numbers of other systems' drivers.
        *(53, 64, 121, 233, 258, 1231, 10051, 10053, 10054, 10060, 10061, 11001),
    )
)
# Of FreeTDS: the connection was cut or not made.
NOT_CONNECTED = 20002
_DEAD = frozenset((NOT_CONNECTED, 20003, 20004, 20006, 20009, 20017, 20047))
# What pymssql says, without a number, of a connection that was lost before.
_CUT = ("Not connected", "Connection is closed", "Could not set connection properties")
_REFUSED = ("certificate", "TLS", "SSL")
_OF_THE_DRIVER = re.compile(r"DB-Lib error message (\d+)")
_SAID = 20018  # the server has said something


class SqlServerFailures(Failures):
    """Implements Failures."""

    driver_error: type[Exception] = pymssql.Error

    @override
    def is_transient(self, error: BaseException) -> bool:
        """A database that cannot be opened may come back."""
        number, text = number_of(error), str(driver_error_of(error))
        if number in _PASSING or number in _NOT_OPEN:
            return True
        return self.is_lost(error) and not any(sign in text for sign in _REFUSED)

    @override
    def is_refused(self, error: BaseException) -> bool:
        """The database cannot be opened, as is said of one that does not exist, too."""
        return number_of(error) in _NOT_OPEN

    @override
    def is_lost(self, error: BaseException) -> bool:
        number = number_of(error)
        return number in _DEAD or (number is None and str(driver_error_of(error)).startswith(_CUT))

    @override
    def is_passing(self, error: BaseException) -> bool:
        return self.is_transient(error)

    @override
    def line(self, error: BaseException) -> str:
        """The server's own words."""
        text = _text(error)
        return text.partition("DB-Lib error")[0].strip().partition("\n")[0] or text.strip().partition("\n")[0]

    @contextmanager
    @override
    def translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except pymssql.Error as error:
            raise _sentence(error, doing, self.line(error)) from error


FAILURES = SqlServerFailures()


def is_forbidden(error: BaseException) -> bool:
    """Whether the login lacks a right."""
    return number_of(error) in _NO_RIGHT


def is_refused_by_server(error: BaseException) -> bool:
    """Whether the server itself has refused a connection. What pymssql says of it may be another connection's."""
    return any(int(each) == _SAID for each in _OF_THE_DRIVER.findall(_text(error)))


def number_of(error: BaseException) -> int | None:
    """The number of an error of the server or of the driver."""
    own = _OF_THE_DRIVER.match(_text(error))
    if own and int(own[1]) in _DEAD:
        # The number beside it may be that of an earlier connection's error, which the driver keeps.
        return int(own[1])
    arguments = driver_error_of(error).args
    number = arguments[0] if arguments else None
    if isinstance(number, tuple):
        number = number[0]
    return number if isinstance(number, int) else None


def _text(error: BaseException) -> str:
    cause = driver_error_of(error)
    said = cause.args[1] if len(cause.args) > 1 else cause.args[0] if cause.args else cause
    if isinstance(said, tuple):
        said = said[-1]
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


ONE_DATABASE = (
    "Azure SQL Database reads one database over a connection: name one in database.names, and give each other database "
    "a pipeline of its own"
)
_REMEDIES = {
    18470: "ALTER LOGIN ... ENABLE: the login is disabled",
    18486: "ALTER LOGIN ... WITH PASSWORD = '...' UNLOCK: the login is locked",
    18487: "ALTER LOGIN ... WITH PASSWORD = '...': the password has expired",
    18488: "ALTER LOGIN ... WITH PASSWORD = '...': the password must be changed",
    40532: "give database.hostname the server's full name, as server.database.windows.net",
    40615: "allow this client's address in the server's firewall (Azure portal, Networking)",
    47072: "encrypt connections: driver.encrypt=true",
    47073: "allow public access in the server's Networking settings, or use its private endpoint",
    40515: ONE_DATABASE,
    976: "connect to the availability group's listener, or let the replica be read (ALLOW_CONNECTIONS = ALL)",
    978: "set driver.applicationIntent=ReadOnly, or connect to the primary by the availability group's listener",
    942: "ALTER DATABASE ... SET ONLINE",
    3906: "the database cannot be written to: for a readable replica set read.only=true and leave "
    "signal.data.collection out",
    41333: "memory-optimized tables are read under SNAPSHOT: set snapshot.isolation.mode=snapshot, or leave them out",
}


def _sentence(error: BaseException, doing: str, line: str) -> SourceError:
    number = number_of(error)
    if number == LOGIN_FAILED:
        remedy = "set database.user and database.password to a login of the server"
        return SourceError(f"the server refuses the login: {line}", remedy=remedy)
    if number in _REMEDIES:
        return SourceError(f"{doing}: {line}", remedy=_REMEDIES[number])
    if number in _NOT_OPEN:
        remedy = "check database.names, and that the login is a user of each of these databases"
        return SourceError(f"{doing}: {line}", where="database.names", remedy=remedy)
    if FAILURES.is_lost(error):
        remedy = "check database.hostname and database.port, that the server runs, and the firewall"
        return SourceError(f"{doing}: the server cannot be reached: {line}", remedy=remedy)
    if number in (NO_OBJECT, _NO_RANGE) and "cdc." in str(error):
        remedy = "USE the database; EXEC sys.sp_cdc_enable_db; then sys.sp_cdc_enable_table for each table"
        return SourceError(f"{doing}: change data capture is not enabled: {line}", remedy=remedy)
    if number in _NO_RIGHT:
        remedy = "grant the privilege; docs/connectors/sqlserver.md lists what a pipeline's user needs"
        return SourceError(f"{doing}: the user lacks the privilege: {line}", remedy=remedy)
    return SourceError(f"{doing}: {line}")
