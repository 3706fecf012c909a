"""Logs values that become null because events cannot have them: table, column and place, once in ten minutes each."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 600.0  # guessed
_place: ContextVar[str] = ContextVar("place")
# When what was logged of a column, and how many values it was since; of this process.
_logged: dict[tuple[str, str], tuple[float, int]] = {}


@contextmanager
def at(place: str) -> Iterator[None]:
    """Conversions in the block are those of a column: `schema.table.column`, a comma, and where its values stand."""
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def became_null(count: int, what: str) -> None:
    """Log that so many values became null, `what` they are."""
    place, now = _place.get("values of a column"), time.monotonic()
    column = place.partition(", ")[0]
    since, before = _logged.get((column, what), (now - _AGAIN_SECONDS, 0))
    if now - since < _AGAIN_SECONDS:
        _logged[column, what] = since, before + count
        return
    _logged[column, what] = now, 0
    more = f", as {before} did since this was logged last" if before else ""
    log.warning("%s: %d %s become null%s", place, count, what, more)
