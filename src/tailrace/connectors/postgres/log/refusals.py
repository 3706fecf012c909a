"""Classifies why the server refused or ended the stream: retry, or an error with its remedy."""

from __future__ import annotations

import re

import psycopg
from psycopg import errors, pq
from psycopg.pq.abc import PGresult

from tailrace.config import Config
from tailrace.connectors.postgres.options import SLOT_NAME
from tailrace.connectors.postgres.position import LogClaim
from tailrace.connectors.postgres.server.connect import NOT_UTF8, connect, first_line, is_transient
from tailrace.connectors.postgres.server.lost_log import WITHOUT_PUBLICATION, WITHOUT_SLOT, find
from tailrace.connectors.retry import is_listed
from tailrace.errors import SourceAwayError, SourceError, TailraceError

_REMEDIES = {
    # A missing slot has this state as well, but `find` reports it as a gap.
    errors.UndefinedObject.sqlstate: WITHOUT_PUBLICATION,
    errors.UndefinedFile.sqlstate: f"the server no longer has log that the slot needs: {WITHOUT_SLOT}; raise "
    "max_slot_wal_keep_size",
    errors.ObjectInUse.sqlstate: "stop that reader, or give this pipeline a slot.name of its own",
    errors.InsufficientPrivilege.sqlstate: "ALTER ROLE <database.user> REPLICATION",
    **dict.fromkeys(NOT_UTF8, f"correct the rows. The change stays in the log as it is: {WITHOUT_SLOT}"),
}
# States that end a stream for good: the publication or the slot is gone, the slot is invalidated or has lost its log,
# or a text of the log cannot be sent.
_FATAL = (
    errors.UndefinedObject.sqlstate,
    errors.ObjectNotInPrerequisiteState.sqlstate,
    errors.UndefinedFile.sqlstate,
    errors.ObjectInUse.sqlstate,
    *NOT_UTF8,
)
# In what the server adds to an error of a stream, whatever its language.
_LSN = re.compile(r"\b[0-9A-F]{1,8}/[0-9A-F]{1,8}\b")


class Refused(SourceError):
    """The server refused to stream, in its own words; `__cause__` is psycopg's error."""

    @property
    def state(self) -> str:
        """The SQLSTATE."""
        return (isinstance(self.__cause__, psycopg.Error) and self.__cause__.sqlstate) or ""


class Interrupted(SourceAwayError):
    """The stream broke off, or could not be opened for the moment: worth another try."""


def refused(result: PGresult) -> Refused:
    """The error for a START_REPLICATION that the server refused."""
    return refused_by(errors.error_from_result(result))


def without_publication(name: str) -> Refused:
    """The error for a stream that leaves rows out: the server warns that it skips a publication that is missing."""
    return refused_by(errors.UndefinedObject(f'publication "{name}" does not exist'))


def refused_by(cause: psycopg.Error) -> Refused:
    """The same, for an error; with the place in the log, which the server tells beside its message."""
    said, _, more = str(cause).strip().partition("\n")
    place = _LSN.search(more)
    error = Refused(first_line(cause) if place is None else f"{said}, at LSN {place[0]}")
    error.__cause__ = cause
    return error


def broken(message: str) -> psycopg.OperationalError:
    """The error for a lost connection."""
    return psycopg.OperationalError(message.strip() or "the server closed the connection")


def ended(connection: psycopg.Connection) -> Exception:
    """The error for a COPY stream that ended: a broken connection, or the server's own error message."""
    pgconn = connection.pgconn
    result = pgconn.get_result() if pgconn.status == pq.ConnStatus.OK else None
    if result is not None:
        return ended_by(errors.error_from_result(result))
    return broken((pgconn.error_message or b"").decode(errors="replace"))


def ended_by(cause: psycopg.Error) -> Exception:
    """The same, for the server's error."""
    return refused_by(cause) if cause.sqlstate in _FATAL else broken(str(cause))


def stream_error(config: Config, claim: LogClaim, error: psycopg.Error | SourceError) -> TailraceError:
    """The error for the reader of the log: Interrupted if a retry may succeed."""
    where = f"slot {config[SLOT_NAME]}"
    said = first_line(error)
    if _worth_retrying(error) or is_listed(config, error):
        return Interrupted(said, where=where, remedy="the server's log says what ended the connection")
    if isinstance(error, SourceError) and not isinstance(error, Refused):
        return error
    if isinstance(error, Refused):
        with connect(config, application="tailrace control") as connection:
            lost = find(connection, config, claim)
        if lost is not None and not lost.is_trusted:
            return lost.error()
    state = error.state if isinstance(error, Refused) else ""
    remedy = _REMEDIES.get(state)
    if state in NOT_UTF8:
        said = f"the log has a text that the server cannot send as UTF-8: {said}"
    return SourceError(said, where=where, remedy=remedy or "see the server's log")


def _worth_retrying(error: psycopg.Error | SourceError) -> bool:
    if isinstance(error, Refused):
        return error.state == errors.ObjectInUse.sqlstate
    if isinstance(error, SourceError):
        return is_transient(error)
    # A connection that was up and broke: the server restarted, was stopped, or the network failed.
    return isinstance(error, psycopg.OperationalError)
