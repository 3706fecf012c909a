"""Keeps the states of a replica's tables in the checkpoint, and asks for incomplete tables to be read again.

The states are stored once a micro-batch is written and before Spark commits it. So a killed run repeats the batch and
finds out the same again; a table that was asked for twice is read twice, which changes nothing.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Protocol

from tailrace.connectors.notifications import REPLICA, Notice
from tailrace.errors import ConfigError, TailraceError
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.sink import KnownTables
from tailrace.sinks.replica.states import (
    ASIDE,
    COMPLETE,
    GONE,
    INCOMPLETE,
    READING,
    SNAPSHOT,
    SeenVersion,
    TableEvent,
    TableState,
    first,
    from_text,
    to_text,
)
from tailrace.snapshot.progress import Progress

log = logging.getLogger(__name__)

FILE = "replica.json"
# A table that stays incomplete is asked for ever more rarely, at least so often.
_LONGEST_PAUSE_SECONDS = 3600.0

NOTICES = {COMPLETE: "COMPLETE", INCOMPLETE: "INCOMPLETE", GONE: "GONE"}


class StateFile(Protocol):
    """A small file that is read and written as a whole."""

    def read(self) -> str | None:
        """The content, None if there is no such file."""

    def write(self, content: str) -> None:
        """Write the file, whether there is one or not."""


@dataclass(frozen=True)
class Reaction:
    """What follows when a table is incomplete. `mode`: it is read again, set aside, or that is told alone.

    A table is asked for again `pause_seconds` after the last time at the earliest.
    """

    mode: str = "read_again"
    pause_seconds: float = 60.0


def shown(table: str) -> str:
    """A table's unique name as signals and filters have it."""
    return table.replace("!2E", ".").replace("!21", "!")


def takes(state: TableState, reaction: Reaction) -> str:
    """What a table that is not complete takes to become so, for people."""
    if state.state == READING:
        return "it is being read again"
    if state.lasting:
        return "change this, `tailrace check` shows where; the table is read again then"
    if reaction.mode == "read_again" and (state.state == INCOMPLETE or state.request is not None):
        return "it is read again" if state.request is None else "it is about to be read again"
    if state.state == ASIDE:
        return "fix the cause, then run `tailrace retry`"
    return "run `tailrace signal FILE execute-snapshot -t TABLE`, or set on_incomplete: read_again"


def line(table: str, state: TableState, reaction: Reaction) -> str:
    """A table that is not complete, for people: since when, why, and what it takes."""
    since = datetime.fromtimestamp(state.since, timezone.utc).isoformat(timespec="seconds")
    what = "is being read again" if state.state == READING else "is incomplete"
    return f"{shown(table)} {what} since {since}: {'; '.join(state.why)}; {takes(state, reaction)}"


@dataclass
class TableStates:
    """The states of one replica's tables. `offset` gives the offset that a micro-batch ends at, by its number.

    `ask` requests a table under an id, and `is_waiting` says whether that request is still to be read. `discard`
    removes what was read of a table whose reading was stopped. `notify` gets a notification of each change. All methods
    may be called by several threads.
    """

    file: StateFile | None = None
    offset: Callable[[int], Mapping[str, Any] | None] = lambda _: None
    ask: Callable[[str, str], None] | None = None
    is_waiting: Callable[[str], bool] = lambda _: False
    _: KW_ONLY
    discard: Callable[[str], None] | None = None
    reaction: Reaction = field(default_factory=Reaction)
    notify: Callable[[Notice], object] | None = None
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._tables = _read(self.file)
        self._stored = to_text(self._tables)

    @property
    def tables(self) -> Mapping[str, TableState]:
        """The states by the tables' unique names."""
        return dict(self._tables)

    @property
    def lines(self) -> tuple[str, ...]:
        """The tables that are incomplete or read again, for people."""
        lacking = {name: state for name, state in self._tables.items() if state.is_lacking and state.state != ASIDE}
        return tuple(line(name, state, self.reaction) for name, state in lacking.items())

    @property
    def known(self) -> KnownTables:
        """What a micro-batch has to know of the tables."""
        seen = {name: state.seen for name, state in self._tables.items() if state.seen is not None}
        gone = frozenset(name for name, state in self._tables.items() if state.state == GONE)
        is_put_aside = self.reaction.mode == "set_aside"
        incomplete = {name: state for name, state in self._tables.items() if state.state == INCOMPLETE}
        put_aside = {name: "; ".join(state.why) for name, state in incomplete.items()} if is_put_aside else {}
        return KnownTables(seen, gone, put_aside)

    def written(self, batch: int, reports: Iterable[TableReport]) -> None:
        """Update the states once a micro-batch is written, ask for tables that are incomplete, and store that."""
        with self._lock:
            before = dict(self._tables)
            for report in reports:
                self._report(report, before)
            self._follow_requests(batch)
            self._tell(before)
            self._ask_again()
            self._store()

    def look(self) -> None:
        """Ask for tables whose time has come."""
        with self._lock:
            self._ask_again()
            self._store()

    def captured(self, tables: Iterable[str], others: Iterable[str] = ()) -> None:
        """Note which tables are captured at a start: others are gone, also `others` that a killed run has written."""
        with self._lock:
            before, names = dict(self._tables), {*tables}
            for name in {*before, *others} - names:
                if name not in before or before[name].state != GONE:
                    self._event(name, TableEvent.DROPPED)
            self._tell(before)
            self._store()

    def _report(self, report: TableReport, before: Mapping[str, TableState]) -> None:
        name = report.table
        if report.renamed_from is not None:
            self._rename(before.get(report.renamed_from), report.renamed_from, name)
        if report.stopped is not None and name in self._tables and self._tables[name].request == report.stopped:
            self._event(name, TableEvent.STOPPED)
        if report.lacking is not None:
            self._event(name, TableEvent.LACKING, why=report.lacking)
        if report.reminder is not None and (name not in self._tables or self._tables[name].state == COMPLETE):
            self._event(name, TableEvent.LACKING, why=report.reminder)
        if report.lasting is not None:
            self._last(name, report.lasting)
        if report.begun is not None:
            self._event(name, TableEvent.BEGUN, request=report.begun)
        if report.snapshot is not None:
            self._event(name, TableEvent.REPLACED, request=SNAPSHOT + report.snapshot)
        if report.left_out is not None:
            self._event(name, TableEvent.LACKING, why=report.left_out)
        if report.ended is not None:
            self._event(name, TableEvent.ENDED, request=report.ended)
        if report.is_gone and (name in self._tables or report.version is not None):
            self._event(name, TableEvent.DROPPED)
        elif (
            (report.is_there and name in self._tables)
            or report.upserted
            or report.deleted
            or (report.version is not None and name not in self._tables)
        ):
            self._event(name, TableEvent.WRITTEN)
        elif report.is_there and name in self._tables:
            self._event(name, TableEvent.WRITTEN)  # by a run that was killed before it stored that
        if report.aside is not None:
            self._event(name, TableEvent.SET_ASIDE, why=report.aside.partition("\n")[0])
            self._tables[name] = replace(self._tables[name], is_cured=report.is_cured)
        if report.version is not None and report.table_id is not None and name in self._tables:
            self._tables[name] = replace(self._tables[name], seen=SeenVersion(report.version, report.table_id))

    def _last(self, name: str, why: str) -> None:
        """Note why a table stays incomplete whatever is read, or that nothing keeps it incomplete any more."""
        state = self._tables.get(name)
        if why and (state is None or why not in state.why):
            self._event(name, TableEvent.LACKING, why=why)
        state = self._tables.get(name)
        if state is not None and state.lasting != why:
            reasons = tuple(each for each in state.why if each != state.lasting or each == why)
            self._tables[name] = replace(state, lasting=why, why=reasons)

    def _rename(self, state: TableState | None, old: str, new: str) -> None:
        """Rows of a table that was incomplete are as incomplete under another name, and the others as complete."""
        reasons = () if state is None else state.left_behind
        if reasons:
            self._event(new, TableEvent.LACKING, why=f"it was {shown(old)}, which was incomplete: {'; '.join(reasons)}")
        else:
            self._event(new, TableEvent.RENAMED)

    def _event(self, name: str, event: TableEvent, *, why: str | None = None, request: str | None = None) -> None:
        now, state = self.clock(), self._tables.get(name)
        if state is None:
            self._tables[name] = first(event, now, why=why, request=request)
        else:
            self._tables[name] = state.after(event, now, why=why, request=request)

    def _follow_requests(self, batch: int) -> None:
        """End the readings that the offset of a micro-batch no longer has: they are done, or were stopped."""
        asked = [name for name, state in self._tables.items() if state.request is not None]
        if not asked:
            return
        offset = self.offset(batch)
        if offset is None:
            return
        progress = Progress.from_json(dict(offset["snapshots"]) if offset.get("snapshots") else None)
        queued = {request.signal for request in (*progress.queue, *(progress.undo.queue if progress.undo else ()))}
        left = {*(offset.get("reading") or {}).get("place", {}).get("left", ())}
        for name in asked:
            state = self._tables[name]
            if state.request is None or state.request in queued or self.is_waiting(state.request):
                continue
            if state.request.startswith(SNAPSHOT):
                self._tables[name] = state if shown(name) in left else state.after(TableEvent.ENDED, self.clock())
                continue
            why = next((incomplete.why for incomplete in progress.incomplete if incomplete.table == shown(name)), None)
            self._event(name, TableEvent.STOPPED, why=why)
            if self.discard is not None:
                self.discard(name)

    def _ask_again(self) -> None:
        """Ask for tables that reading cures, where nobody has and the pause since the last time is over."""
        if self.ask is None or self.reaction.mode != "read_again":
            return
        for name, state in list(self._tables.items()):
            is_cured = (state.state == INCOMPLETE or (state.state == ASIDE and state.is_cured)) and not state.lasting
            if not is_cured or state.request is not None or not self._is_due(state):
                continue
            request = str(uuid.uuid4())
            try:
                self.ask(shown(name), request)
            except TailraceError as error:
                log.warning("%s cannot be asked for again: %s", shown(name), error)
                self._event(name, TableEvent.ASKED)  # not at every look
                continue
            self._event(name, TableEvent.ASKED, request=request)

    def _is_due(self, state: TableState) -> bool:
        pause = min(self.reaction.pause_seconds * 2 ** max(0, state.tries - 1), _LONGEST_PAUSE_SECONDS)
        return state.asked is None or self.clock() - state.asked >= pause

    def _tell(self, before: Mapping[str, TableState]) -> None:
        """Log and notify what has changed."""
        for name, state in self._tables.items():
            former = before.get(name)
            if former is not None and (former.state, former.why, former.again) == (state.state, state.why, state.again):
                continue
            reasons = "; ".join(state.again or state.why)
            if state.state == INCOMPLETE or (state.again and (former is None or state.again != former.again)):
                log.warning("%s is incomplete: %s; %s", shown(name), reasons, takes(state, self.reaction))
            elif state.state == COMPLETE and former is not None and former.is_lacking:
                log.warning("%s is complete again", shown(name))
            elif state.state == GONE and former is not None and former.state != GONE:
                log.warning("%s is gone: the source has no such table any more, or it is not captured", shown(name))
            else:
                continue
            if self.notify is not None and state.state in NOTICES:
                self.notify(Notice(REPLICA, NOTICES[state.state], (("table", shown(name)), ("reason", reasons))))

    def _store(self) -> None:
        text = to_text(self._tables)
        if self.file is not None and text != self._stored:
            self.file.write(text)
        self._stored = text


def _read(file: StateFile | None) -> dict[str, TableState]:
    """The stored states. Raises ConfigError for a damaged file."""
    text = None if file is None else file.read()
    if text is None:
        return {}
    try:
        return from_text(text)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            "the states of the replica's tables cannot be read: the file is damaged",
            where=f"{FILE} in the checkpoint",
            remedy="put it back from a copy; or delete it, and run `tailrace reconcile` to find tables that are "
            "incomplete",
        ) from error
