"""Tells what an error of a lake, Arrow or the storage means: whether it concerns one table or all, and its remedy."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable
from typing import TypeVar

from deltalake.exceptions import CommitFailedError, DeltaError

from tailrace.errors import SinkAwayError, SinkError, TableError, TailraceError
from tailrace.sinks.replica.table import LakeError, LostRaceError
from tailrace.sinks.replica.target import Target

T = TypeVar("T")

# What a table or a lake raises.
ERRORS = (DeltaError, LakeError, OSError)
_LOST = (CommitFailedError, LostRaceError)

# How the causes of a Delta error are listed: a line each, for a terminal.
_CAUSE, _COLOURS = "↳", re.compile(r"\x1b\[[0-9;]*m")
_ATTEMPTS = 5
_PAUSE_S = 0.2
# What the storage's own library says; other words of an error may be the names and values of a user's columns.
_OF_THE_STORAGE = re.compile(
    r"generic (?!deltatable)\w+ error|error performing [a-z]+ |error sending request|operation timed out after"
    r"|\(os error \d+\)|\bos \{ code: \d+",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\(os error (\d+)\)|\bOs \{ code: (\d+)|\[Errno (\d+)\]", re.IGNORECASE)
# A file of a table, where the storage is there.
_LOST_FILE = re.compile(r"object at location \S+ not found(?!.*(bucket|container))", re.IGNORECASE | re.DOTALL)
# Arrow raises an error of its own where a library beneath it fails while rows are read.
_BENEATH_ARROW = "External error"
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
# What Rust's libraries raise where they give up; its class can be named by its name alone.
_PANIC = "PanicException"


def retried(place: Target, attempt: Callable[[], T], attempts: int = _ATTEMPTS) -> T:
    """The result of the attempt. If its commit lost a race it is repeated, on the newer version. Raises SinkError."""
    try:
        return attempt()
    except TailraceError:
        raise
    except _LOST as error:
        if attempts == 1:
            raise failed(place, error) from error
        time.sleep(_PAUSE_S * (_ATTEMPTS + 1 - attempts))
        return retried(place, attempt, attempts - 1)
    except BaseException as error:
        if not is_failure(error):
            raise
        raise failed(place, error) from error


def is_failure(error: BaseException) -> bool:
    """Whether an error is one of what was tried, and not the end of the process."""
    return isinstance(error, Exception) or type(error).__name__ == _PANIC


def failed(place: Target, error: BaseException, where: str | None = None) -> SinkError:
    """What an error means; `where` it happened, by default in the table.

    TableError where the table alone is concerned, SinkAwayError where the storage may be back later, else SinkError.
    """
    text, kind, number = said(error), SinkError, _number(error)
    if number == errno.ENOSPC:
        remedy = "free space on the disk; the batch is then written again"
    elif number in _DENIED or (isinstance(error, LakeError) and text.startswith("Permission denied")):
        remedy = f"give the user of the executors the right to write {place.uri}"
    elif number == errno.ENOTDIR:
        remedy = f"remove the file that is in place of the folder {place.uri} or one above it, or set another `path`"
    elif isinstance(error, _LOST):
        kind = SinkAwayError
        remedy = "let one query alone write this table; restart, and the batch is written again"
    elif _is_away(error):
        kind = SinkAwayError
        remedy = f"check {place.uri}; the batch is written again when it answers"
    else:
        kind = TableError
        remedy = (
            f"correct it in the source, leave the column or table out of the capture, or move {place.uri} away if it "
            "is damaged; then run `tailrace retry`"
        )
    better = error.remedy if isinstance(error, LakeError) else None
    return kind(f"the replica could not be written: {text}", where=where or place.table, remedy=better or remedy)


def _is_away(error: BaseException) -> bool:
    """Whether the storage or catalog has failed, and not what is stored there."""
    text = str(error)
    if _LOST_FILE.search(text):
        return False
    return isinstance(error, OSError) or (_is_from_beneath(error) and _OF_THE_STORAGE.search(text) is not None)


def _is_from_beneath(error: BaseException) -> bool:
    """Whether an error's text is a library's of the storage: others may show values of rows."""
    return isinstance(error, DeltaError | OSError) or (isinstance(error, ValueError) and _BENEATH_ARROW in str(error))


def _number(error: BaseException) -> int | None:
    """The number of the operating system's error, None where it is another error."""
    number = getattr(error, "errno", None)
    if number is not None or not _is_from_beneath(error):
        return number
    match = _NUMBER.search(str(error))
    return None if match is None else int(next(group for group in match.groups() if group))


def said(error: BaseException) -> str:
    """An error of Delta's, on one line: the first one, and the innermost of those that it lists as its causes."""
    first, *causes = _COLOURS.sub("", str(error)).splitlines() or [type(error).__name__]
    inner = [cause.replace(_CAUSE, "").strip() for cause in causes if _CAUSE in cause]
    return f"{first} ({inner[-1]})" if inner and inner[-1] not in first else first
