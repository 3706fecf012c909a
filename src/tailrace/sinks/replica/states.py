"""The states of a replica's tables, stored beside the checkpoint: complete, reading, incomplete, set aside, gone.

| state | means | set by |
|---|---|---|
| complete | its rows are those of the source at a place in the log | a reading that ended, or rows from the log alone |
| reading | its rows are being read; with a reason it was incomplete before | the first rows of a snapshot |
| incomplete | its rows may differ from the source, with the reason | what happened outside the log, or to the replica |
| aside | its changes are stored as dead letters | rows that the replica cannot take |
| gone | the source has no such table, or it is no longer captured | a drop, the catalogue, the filters |

What each event makes of each state is the table TRANSITIONS. A table without an entry has never been met.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from enum import Enum
from typing import Any

COMPLETE, READING, INCOMPLETE, ASIDE, GONE = "complete", "reading", "incomplete", "aside", "gone"
# Before the name of a snapshot whose rows replace a table's, in the request of its state.
SNAPSHOT = "snapshot "
_MOST_REASONS, _LONGEST_REASON = 5, 300  # guessed


class TableEvent(Enum):
    """What may happen to a table of a replica."""

    WRITTEN = "changes of the log were written"
    LACKING = "something happened that the log does not carry"
    BEGUN = "the first rows of a requested table came"
    REPLACED = "the first rows of a snapshot replaced those of the table"
    ENDED = "all rows of a snapshot are written"
    ASKED = "the table is requested again"
    STOPPED = "a requested snapshot was stopped or given up"
    SET_ASIDE = "the replica could not take the changes"
    RENAMED = "rows that were complete under another name are its rows"
    DROPPED = "the source has no such table any more, or it is not captured"


# By event, the next state for complete, reading, incomplete, aside, gone, and for a table that was never met.
TRANSITIONS: Mapping[TableEvent, tuple[str, str, str, str, str, str]] = {
    TableEvent.WRITTEN: (COMPLETE, READING, INCOMPLETE, ASIDE, COMPLETE, COMPLETE),
    # While a table is read, its first rows may be older than what happened: it is read once more, see `again`.
    TableEvent.LACKING: (INCOMPLETE, READING, INCOMPLETE, ASIDE, INCOMPLETE, INCOMPLETE),
    # A complete table that somebody reads again stays so: its rows are replaced when all are read.
    TableEvent.BEGUN: (COMPLETE, READING, READING, ASIDE, READING, READING),
    # Until all are read it has some of its rows.
    TableEvent.REPLACED: (READING, READING, READING, ASIDE, READING, READING),
    TableEvent.ENDED: (COMPLETE, COMPLETE, COMPLETE, COMPLETE, COMPLETE, COMPLETE),
    TableEvent.ASKED: (COMPLETE, READING, INCOMPLETE, ASIDE, GONE, INCOMPLETE),
    TableEvent.STOPPED: (COMPLETE, INCOMPLETE, INCOMPLETE, ASIDE, GONE, INCOMPLETE),
    TableEvent.SET_ASIDE: (ASIDE, ASIDE, ASIDE, ASIDE, ASIDE, ASIDE),
    TableEvent.RENAMED: (COMPLETE, COMPLETE, COMPLETE, ASIDE, COMPLETE, COMPLETE),
    TableEvent.DROPPED: (GONE, GONE, GONE, GONE, GONE, GONE),
}
_ORDER = (COMPLETE, READING, INCOMPLETE, ASIDE, GONE)


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """The version of a Delta table that was written last, and the table's id: another one in its place has another."""

    version: int
    id: str


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's state, since when (seconds since 1970), and why it is not complete.

    `request` is the signal or snapshot by which it is being read or is to be read, `asked` when that was requested
    last and `tries` how often since the table was complete. `again` are reasons that came while it was read. `seen` is
    the Delta table as it was written last. `is_cured`: reading a table that is set aside makes it right. `lasting` says
    why the log does not bring all changes: as long as it is there, no reading makes the table complete. `left` says why
    a table that is gone was not complete: the log may still have the new name of its rows.
    """

    state: str
    since: float
    why: tuple[str, ...] = ()
    request: str | None = None
    _: KW_ONLY
    asked: float | None = None
    tries: int = 0
    again: tuple[str, ...] = ()
    seen: SeenVersion | None = None
    is_cured: bool = False
    lasting: str = ""
    left: tuple[str, ...] = ()

    @property
    def is_lacking(self) -> bool:
        """Whether its rows may differ from the source's; a first reading is not meant."""
        return self.state in (INCOMPLETE, ASIDE) or (self.state == READING and bool(self.why))

    @property
    def is_replaced(self) -> bool:
        """Whether its rows are those of a snapshot that is not read to its end: those of before are gone."""
        return self.state == READING and self.request is not None and self.request.startswith(SNAPSHOT)

    @property
    def left_behind(self) -> tuple[str, ...]:
        """Why rows that get another name may differ from the source's."""
        if self.state == READING and not self.why:
            return ("it was being read",)
        return self.left if self.state == GONE else self.why

    def after(self, event: TableEvent, now: float, *, why: str | None = None, request: str | None = None) -> TableState:
        """The state after an event; `request` is the reading that the event is about."""
        if event is TableEvent.ENDED and self.state in (READING, INCOMPLETE) and request not in (None, self.request):
            # It began before what is the matter now; or an earlier one, whose end is told again after a restart.
            return self
        if event is TableEvent.ENDED and self.state == READING and self.again:
            # Part of the rows was read before the last thing happened.
            return replace(self, state=INCOMPLETE, why=self.again, again=(), request=None)
        if event is TableEvent.ENDED and self.lasting:
            return replace(self, state=INCOMPLETE, why=(self.lasting,), again=(), request=None)
        following = TRANSITIONS[event][_ORDER.index(self.state)]
        reasons = (self.why if why is None else _with(self.why, why)) if following not in (COMPLETE, GONE) else ()
        left = self.left_behind if following == GONE else ()
        since = now if following != self.state else self.since
        changed = replace(self, state=following, since=since, why=reasons, left=left)
        if event is TableEvent.LACKING and self.state == READING and why is not None:
            return replace(changed, why=self.why or (why,), again=_with(self.again, why))
        if event is TableEvent.LACKING:
            return replace(changed, request=None)
        if event in (TableEvent.BEGUN, TableEvent.REPLACED, TableEvent.ASKED):
            is_asked = event is TableEvent.ASKED
            asked = now if is_asked else self.asked
            return replace(changed, request=request, asked=asked, tries=self.tries + is_asked)
        if event in (TableEvent.ENDED, TableEvent.RENAMED):
            return replace(changed, request=None, again=(), tries=0)
        if event is TableEvent.DROPPED:
            # What becomes of its replica does not matter any more.
            return replace(changed, request=None, again=(), tries=0, seen=None, lasting="")
        if event is TableEvent.STOPPED:
            # The next reading begins after all that has happened.
            more = tuple(each for each in self.again if each not in changed.why) if changed.why else ()
            return replace(changed, request=None, again=(), why=(*changed.why, *more)[-_MOST_REASONS:])
        return changed


def first(event: TableEvent, now: float, *, why: str | None = None, request: str | None = None) -> TableState:
    """The state of a table that was never met before the event."""
    following = TRANSITIONS[event][-1]
    reasons = () if why is None or following in (COMPLETE, GONE) else (why[:_LONGEST_REASON],)
    return TableState(following, now, reasons, None if following in (COMPLETE, GONE) else request)


def _with(reasons: tuple[str, ...], why: str) -> tuple[str, ...]:
    """Reasons with one more, the newest last; each once, and not more than can be read."""
    why = why[:_LONGEST_REASON]
    return (*(each for each in reasons if each != why), why)[-_MOST_REASONS:]


def to_text(tables: Mapping[str, TableState]) -> str:
    """The states as the text of a file; the keys are the tables' unique names."""
    return json.dumps({"version": 1, "tables": {name: asdict(state) for name, state in sorted(tables.items())}})


def from_text(text: str) -> dict[str, TableState]:
    """The inverse of `to_text`. Raises ValueError, KeyError and TypeError for other texts."""
    return {name: _state(node) for name, node in json.loads(text)["tables"].items()}


def _state(node: Mapping[str, Any]) -> TableState:
    seen = node["seen"]
    lists = {name: tuple(node.get(name, ())) for name in ("why", "again", "left")}
    return TableState(**{**node, **lists, "seen": None if seen is None else SeenVersion(**seen)})
