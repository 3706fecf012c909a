"""What it means that the log's stream was refused or broke off: another try, or an error with its remedy."""

from __future__ import annotations

import psycopg
from psycopg import pq

from tailrace.config import Config
from tailrace.connectors.postgres.connect import connect, first_line, is_transient
from tailrace.connectors.postgres.gap import find
from tailrace.connectors.postgres.position import Claim
from tailrace.connectors.retry import is_listed
from tailrace.errors import SourceError, TailraceError

_FATAL = ("replication slot", "WAL segment", "publication")
_REMEDIES = (
    (
        "publication",
        "create the publication again with the captured tables, then start with a new checkpoint for a new snapshot: "
        "the server does not send what was written while there was none",
    ),
    ("WAL segment", "the position is lost: start with a new checkpoint; raise max_slot_wal_keep_size"),
    ("is active for PID", "stop that reader, or give this pipeline a slot.name of its own"),
    ("permission denied", "ALTER ROLE <database.user> REPLICATION"),
)


class Refused(SourceError):
    """START_REPLICATION was refused; the text is the server's."""


class Interrupted(SourceError):
    """The stream broke off, or could not be opened for the moment: worth another try."""


def broken(message: str) -> psycopg.OperationalError:
    """The error for a connection that is no more."""
    return psycopg.OperationalError(message.strip() or "the server closed the connection")


def ended(connection: psycopg.Connection) -> Exception:
    """The error for a COPY stream that ended: a broken connection, or the server's own error message."""
    pgconn = connection.pgconn
    result = pgconn.get_result() if pgconn.status == pq.ConnStatus.OK else None
    message = (
        result.error_message if result is not None else pgconn.error_message
    ) or b"the server closed the connection"
    text = message.decode(errors="replace").strip()
    return Refused(text) if any(sign in text for sign in _FATAL) else broken(text)


def told(config: Config, claim: Claim, error: psycopg.Error | SourceError) -> TailraceError:
    """The error for whoever asked for the log: Interrupted where another try is worth it."""
    where = f"slot {config.text('slot.name')}"
    said = first_line(error)
    if _worth_retrying(error) or is_listed(config, error):
        return Interrupted(said, where=where, remedy="start again; see the server's log for what ended the connection")
    if isinstance(error, SourceError) and not isinstance(error, Refused):
        return error
    if isinstance(error, Refused):
        with connect(config, application="tailrace control") as connection:
            lost = find(connection, config, claim)
        if lost is not None and not lost.is_trusted:
            return lost.error()
    remedy = next((text for sign, text in _REMEDIES if sign in said), "see the server's log")
    return SourceError(said, where=where, remedy=remedy)


def _worth_retrying(error: psycopg.Error | SourceError) -> bool:
    if isinstance(error, Refused):
        return "is active for PID" in str(error)
    if isinstance(error, SourceError):
        return is_transient(error)
    # A connection that was up and broke: the server restarted, was stopped, or the network failed.
    return isinstance(error, psycopg.OperationalError)
