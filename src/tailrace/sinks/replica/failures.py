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
# Words of errors about a storage, which all tables have: deltalake has no class for them.
_OF_THE_STORAGE = re.compile(
    r"object ?store|generic (s3|gcs|azure|microsoftazure|http|localfilesystem|local)|connection|connect error"
    r"|timed? ?out|dns|credential|unauthori[sz]ed|forbidden|access ?denied|error sending request|too many open files"
    r"|certificate",
    re.IGNORECASE,
)


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
    except Exception as error:
        raise failed(place, error) from error


def failed(place: Target, error: Exception, where: str | None = None) -> SinkError:
    """What an error means; `where` it happened, by default in the table.

    TableError where the table alone is concerned, SinkAwayError where the storage may be back later, else SinkError.
    """
    text, kind = said(error), SinkError
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
        remedy = "free space on the disk; the batch is then written again"
    elif "ermission denied" in str(error):
        remedy = f"give the user of the executors the right to write {place.uri}"
    elif "Not a directory" in str(error):
        remedy = f"remove the file that is in place of the folder {place.uri} or one above it, or set another `path`"
    elif isinstance(error, _LOST):
        kind = SinkAwayError
        remedy = "let one query alone write this table; restart, and the batch is written again"
    elif isinstance(error, OSError) or (isinstance(error, DeltaError) and _OF_THE_STORAGE.search(str(error))):
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


def said(error: Exception) -> str:
    """An error of Delta's, on one line: the first one, and the innermost of those that it lists as its causes."""
    first, *causes = _COLOURS.sub("", str(error)).splitlines() or [type(error).__name__]
    inner = [cause.replace(_CAUSE, "").strip() for cause in causes if _CAUSE in cause]
    return f"{first} ({inner[-1]})" if inner and inner[-1] not in first else first
