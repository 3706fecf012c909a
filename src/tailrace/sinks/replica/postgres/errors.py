"""Classifies errors of PostgreSQL for a replica: a lost race, a database that is away, or one table that fails.

They are told by SQLSTATE, as the server's messages are in the server's language.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from adbc_driver_manager import Error as AdbcError

from tailrace.sinks.replica.table import LakeError, LostRaceError

# Deadlock, and a transaction that came too late.
_LOST = ("40001", "40P01")
# A column or a table that is gone since it was looked up.
_GONE = ("42703", "42P01")
# Connections, resources, a lock of another session, a statement that was ended, a server that stops, its disk; and one
# that is a standby, as after a failover.
_AWAY = ("08", "53", "55P03", "57", "58", "25P03", "25P04", "25006", "40003")
_DISK_FULL, _DENIED = "53100", ("42501", "28000", "28P01")
# A column that views are made of cannot be dropped, or change its type.
_USED = ("2BP01", "0A000")
_NO_TEXT, _NO_CHARACTER = "22021", "22P05"
_CONSTRAINT, _LIMIT = "23", "54"
# A value is none of the column's type, or is nested too deeply for it.
_REFUSED = ("22", "54001")
# libpq reports a refused login without a SQLSTATE. These are words of a server that speaks English.
_LOGIN = ("authentication failed", "no pg_hba.conf entry", "is not permitted to log in")

RIGHTS = (
    "let the role of `url` log in with its password, own the tables or the schema of `namespace` (or CREATE on the "
    "database, to make it), and have TEMPORARY on the database"
)
_VIEWS = "drop the views of the table, run `tailrace retry`, and make them again"
_NULS = (
    "take the character out in the source, or leave the column out of the capture, then run `tailrace retry`; no text "
    "of PostgreSQL has the character U+0000"
)


# By the beginning of a SQLSTATE, the first one that fits.
_REMEDIES = (
    (_NO_TEXT, _NULS),
    (_NO_CHARACTER, "let the replica be in a database whose encoding is UTF8, then run `tailrace retry`"),
    (_CONSTRAINT, "drop the constraint, which this replica has not made, then run `tailrace retry`"),
    (
        _LIMIT,
        "leave columns out of the capture (column.exclude.list), or let shorter ones be the key "
        "(message.key.columns), then run `tailrace retry`",
    ),
)


class RefusedValueError(LakeError):
    """A value is none of its column's type."""


@contextmanager
def translating() -> Iterator[None]:
    """Raise what Table says instead of what the drivers raise; other errors pass."""
    try:
        yield
    except (psycopg.Error, AdbcError) as error:
        raise _meaning(error) from error


def is_gone(error: psycopg.Error | AdbcError) -> bool:
    """Whether a column or a table is not there, or not any more."""
    return error.sqlstate in _GONE


def is_refused(error: psycopg.Error | AdbcError) -> bool:
    """Whether a value is none of its column's type."""
    return (error.sqlstate or "").startswith(_REFUSED) and error.sqlstate != _NO_TEXT


def said(error: BaseException) -> str:
    """What the server said, in one line and without rows of the table, which its details may have."""
    diagnostics = getattr(error, "diag", None)
    text = (None if diagnostics is None else diagnostics.message_primary) or str(error)
    return next(iter(text.strip().splitlines()), type(error).__name__)


def _meaning(error: psycopg.Error | AdbcError) -> Exception:
    state, text = error.sqlstate or "", said(error)
    if state in _DENIED or (not state and any(words in text for words in _LOGIN)):
        return LakeError(f"Permission denied by the database: {text}", RIGHTS)
    if state in _LOST:
        return LostRaceError(text)
    if state == _DISK_FULL:
        return OSError(errno.ENOSPC, f"the disk of the database is full: {text}")
    if state.startswith(_AWAY) or (not state and _is_of_the_connection(error)):
        return OSError(f"the database does not answer: {text}")
    if state in _USED:
        return LakeError(text, _VIEWS)
    remedy = next((words for begin, words in _REMEDIES if state.startswith(begin)), None)
    return RefusedValueError(text, remedy) if is_refused(error) else LakeError(text, remedy)


def _is_of_the_connection(error: psycopg.Error | AdbcError) -> bool:
    return isinstance(error, psycopg.OperationalError | AdbcError)
