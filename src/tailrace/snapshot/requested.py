"""Plans requested snapshots: which chunk or which tables the next micro-batch reads beside the log.

What `head` decided about a batch is kept in memory until `plan` uses it, and lost if the driver dies in between. Then
the batch, planned again, reads only the log, and the first batch after the restart reads the chunk or the tables again
(see Progress.undo).

What a batch does in which state is the table of `work.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors import notifications
from tailrace.connectors.notifications import WITHOUT_ROWS, Notice
from tailrace.connectors.signal import Signal
from tailrace.connectors.snapshot_ports import OnDemandSnapshots, SnapshotSplit
from tailrace.connectors.snapshots import ReadChunk
from tailrace.errors import SignalError, TailraceError
from tailrace.snapshot import capture_changes
from tailrace.snapshot.actions import act
from tailrace.snapshot.blocking import BlockingSnapshots
from tailrace.snapshot.channels import Channels
from tailrace.snapshot.incremental import DONE, EMPTY, FAILED, OTHERWISE, UNCAPTURED, IncrementalSnapshots, reason
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.signals import (
    ABOUT_SNAPSHOTS,
    ADD,
    BLOCKING,
    INCREMENTAL,
    REMOVE,
    TableRequest,
    check_no_surrogate,
    check_size,
)
from tailrace.snapshot.table_note import TableNote
from tailrace.snapshot.table_signals import TableSignals
from tailrace.snapshot.work import BatchWork, work

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NextBatch:
    """What the next batch does: `end` is where it must end (None: anywhere), `moves`: it is needed even without log."""

    progress: Progress | None = None
    end: Any = None
    moves: bool = False
    chunk: ReadChunk | None = None
    _: KW_ONLY
    splits: Sequence[SnapshotSplit] | None = None
    notices: tuple[Notice, ...] = ()
    notes: tuple[TableNote, ...] = ()


class RequestedSnapshots:
    """Carries out signals for one pipeline's planner.

    `late` are tables that were added to the log only at this start, with the reason why they are incomplete.
    `is_bounded`: the run ends when nothing is left to do.
    """

    def __init__(self, config: Config, server: OnDemandSnapshots) -> None:
        self.config = config
        self._start = config
        self._server = server
        self._incremental = IncrementalSnapshots(config, server)
        self._table = TableSignals(server)
        self._channels = Channels(config)
        self._blocking = BlockingSnapshots(config, server)
        self._waits: int | None = None
        self._has_read_tables = False
        self.is_bounded = False
        self.late: tuple[tuple[str, str], ...] = ()

    def before(self) -> Progress:
        """The first state: rows that are already in the signal table are ignored. Signals of other channels are not."""
        return Progress(self._table.at_first())

    def step(
        self,
        state: Progress | None,
        offset: dict[str, Any],
        start: Any,
        is_start: bool,
        *,
        is_behind: bool,
        warnings: tuple[str, ...],
    ) -> NextBatch:
        """The next step after `offset`, new signals included; nothing is read while there is a backlog of the log.

        The batch begins at the position `start`. `warnings` are those of the source, which the offset shows.

        The first batch after a start reads what the last one read again, as its rows may be lost. Any later call means
        that the batch before is committed.
        """
        if self._has_read_tables:
            # Two snapshots of one moment could not be distinguished.
            self._blocking.close()
            self._has_read_tables = False
        stored = state if state is not None else self.before()
        before = stored.undone() if is_start else replace(stored, undo=None)
        if is_start:
            before = capture_changes.settled(self._start, before)
        before = replace(self._with_late(before), warnings=warnings)
        progress = self._signalled(before, offset)
        self.use(progress)
        notices = _notices(before, progress)
        moves = progress != replace(stored, undo=None)
        what = work(progress, is_behind=is_behind, has_ended=self._server.has_ended)
        if what is BatchWork.WAIT:
            self._wait(progress.wait)
            return NextBatch(progress, moves=moves, notices=notices)
        if progress.queue:
            progress = replace(progress, wait=None)
        if what is BatchWork.TABLES:
            return self._block(progress, start, moves, notices)
        self._blocking.close()
        if what is BatchWork.CHUNK:
            return self._chunk(progress, moves, notices)
        return NextBatch(progress, moves=moves, notices=notices)

    def _chunk(self, progress: Progress, moves: bool, notices: tuple[Notice, ...]) -> NextBatch:
        """An incremental snapshot: the batch reads a chunk, unless none can be read now."""
        stages, chunk = self._incremental.chunk(progress)
        if not stages:
            return NextBatch(progress, moves=moves, notices=notices)
        at = progress
        notes: list[TableNote] = []
        for after, status in stages:
            notices += _read(at, after, status, self._server.shown) if status != OTHERWISE else ()
            notes += _ended(self.config, at, after, status)
            at = after
        end = None if chunk is None else chunk.end
        return NextBatch(at.undoing(progress), end, True, chunk, notices=notices, notes=tuple(notes))

    def _with_late(self, progress: Progress) -> Progress:
        """The state in which tables are incomplete that were added to the log only at this start."""
        for table, why in self.late:
            progress = progress.lacking(table, why)
        self.late = ()
        return progress

    def _signalled(self, progress: Progress, offset: dict[str, Any]) -> Progress:
        """The state after the signals that are new."""
        arrived = self._channels.poll(progress.files, progress.topic, is_bounded=self.is_bounded)
        new, handled = self._table.new(progress.handled)
        if new or progress.handled is None:
            progress = replace(progress, handled=handled)
        if arrived is not None:
            progress = replace(progress, files=arrived.files, topic=arrived.topic)
        for signal in (*new, *(() if arrived is None else arrived.signals)):
            log.info("signal %s: %s %s", signal.id, signal.type, signal.shown)
            try:
                progress = self._carried_out(signal, progress, offset)
            except Exception as error:
                # No signal may stop the pipeline; but a lost connection is not the signal's fault.
                if self._server.failures.is_lost(error):
                    raise
                said = (signal.id, signal.type, error, signal.shown)
                is_known = isinstance(error, TailraceError)
                log.error("signal %s (%s) is ignored: %s; its data is: %s", *said, exc_info=not is_known)
            self.use(progress)
        return progress

    def _carried_out(self, signal: Signal, progress: Progress, offset: dict[str, Any]) -> Progress:
        """The state after a signal. Raises SignalError for one that is not carried out."""
        if signal.wrong is not None:
            raise SignalError(signal.wrong)
        check_size(signal)
        if not self._server.takes_surrogate_keys:
            check_no_surrogate(signal)
        if signal.type in ABOUT_SNAPSHOTS:
            return progress.asked(signal, self._server.tables(self.config))
        if signal.type in (ADD, REMOVE):
            return capture_changes.change(self._server, self._start, signal, progress)
        act(signal, offset)
        return progress

    def _wait(self, token: int | None) -> None:
        if self._waits != token:
            self._waits = token
            log.warning("an added table is read when the transactions that began before it was added have ended")

    def use(self, progress: Progress | None) -> Config:
        """Capture the tables of a state from here on; returns the configuration for it."""
        tables = () if progress is None else progress.tables
        if tables != self.config.tables:
            self.config = replace(self._start, tables=tables)
            self._incremental.config = self._blocking.config = self.config
        return self.config

    def _block(self, progress: Progress, start: Any, moves: bool, notices: tuple[Notice, ...]) -> NextBatch:
        """A blocking snapshot: one batch reads the log up to a snapshot's position, the next the tables."""
        done, requests = progress.without_blocking()
        planned = self._blocking.plan({request.table: request.condition for request in requests}, start)
        if planned.refused is not None:
            names = ", ".join(request.table for request in requests)
            said = (requests[0].signal, names, planned.refused)
            log.error("the blocking snapshot of signal %s (%s) is given up: %s", *said)
            why = reason(self._server.failures, planned.refused)
            aborted = Notice(notifications.INITIAL, notifications.ABORTED, ((notifications.ERROR, why),))
            left = replace(done, undo=None).giving_up(requests, why)
            return NextBatch(left, None, True, notices=(*notices, aborted))
        if planned.splits is not None:
            after, told = self._without_unknown(done, requests)
            if not planned.splits:
                return NextBatch(after, planned.end, True, notices=(*notices, *told, *WITHOUT_ROWS))
            self._has_read_tables = True
            return NextBatch(after, planned.end, True, splits=_announced(planned.splits, (*notices, *told)))
        return NextBatch(progress, planned.end, moves or planned.end is not None, notices=notices)

    def _without_unknown(self, done: Progress, requests: Sequence[TableRequest]) -> tuple[Progress, tuple[Notice, ...]]:
        """The state in which tables that the snapshot goes without are incomplete; the notifications of those.

        They do not exist, or the lists exclude them, which the reference engine does not tell.
        """
        lists = TableFilter.from_config(self.config)
        captured = {str(table) for table in self._server.tables(self.config)}
        # A replica that has asked for a table is told by the log or the catalogue that it is gone.
        requests = [request for request in requests if not request.is_again]
        excluded = [request for request in requests if not lists.captures(request.id(self.config))]
        absent = [each for each in requests if each.table not in captured and each not in excluded]
        after = done.giving_up(excluded, UNCAPTURED).giving_up(absent, "there is no such table")
        told = () if Fault.EXCLUDED_AS_UNKNOWN in self.config[COMPAT_FAULTS] else excluded
        return after, tuple(
            notifications.scanned(notifications.INITIAL, each.table, "", notifications.NOT_CAPTURED).with_rows(0)
            for each in told
        )

    def close(self) -> None:
        """Release the open snapshot, and the channels."""
        self._blocking.close()
        self._channels.close()


def _announced(splits: Sequence[SnapshotSplit], notices: tuple[Notice, ...]) -> Sequence[SnapshotSplit]:
    """The splits with notices before the first row."""
    if not notices or not splits:
        return splits
    first, *others = splits
    return [first.announced(notices), *others]


def _notices(before: Progress, after: Progress) -> tuple[Notice, ...]:
    """Notifications of new signals; a stop names its tables, the current one last (checkAndProcessStopFlag)."""
    stopped = sorted(
        (each for each in before.queue if each not in after.queue), key=lambda each: each == before.queue[0]
    )
    continues = any(each in after.queue for each in before.queue if each.kind == INCREMENTAL)
    listed = (("data_collections", after.names),)
    notices: list[Notice] = []
    aborted = ",".join(dict.fromkeys(each.table for each in stopped if each.kind == INCREMENTAL))
    if aborted:
        notices.append(_notice(notifications.ABORTED, before, (("data_collections", aborted),)))
    if any(each.kind == BLOCKING for each in stopped):
        notices.append(Notice(notifications.INITIAL, notifications.ABORTED))
    if after.names and not continues:
        notices.append(_notice(notifications.STARTED, after, listed))
    if before.paused != after.paused and (continues or after.paused):
        notices.append(_notice(notifications.PAUSED if after.paused else notifications.RESUMED, after, listed))
    return tuple(notices)


def _read(before: Progress, after: Progress, status: str, shown: Callable[[str], str]) -> tuple[Notice, ...]:
    """Notifications of a chunk: its table is in progress or finished, and with the last table the snapshot."""
    request = before.queue[0]
    if after.queue[:1] == before.queue[:1] and after.last is not None and after.maximum is not None:
        columns = slice(
            1 if request.surrogate else None
        )  # without the primary key that distinguishes rows of one value
        ends = {"maximum_key": after.maximum[columns], "last_processed_key": after.last[columns]}
        keys = [
            (name, ",".join("<null>" if part is None else shown(part) for part in key)) for name, key in ends.items()
        ]
        place = (notifications.INCREMENTAL, request.table, before.names)
        return (notifications.in_progress(*place, *keys, id_=request.signal),)
    done = notifications.scanned(notifications.INCREMENTAL, request.table, before.names, status, request.signal)
    done = done.with_rows(before.rows)
    if status == FAILED:
        lacking = [
            each.why for each in after.incomplete if each.table == request.table and each not in before.incomplete
        ]
        done = replace(done, data=(*done.data, *((notifications.ERROR, why) for why in lacking)))
    return (done,) if after.names else (done, _notice(notifications.COMPLETED, before, ()))


def _ended(config: Config, before: Progress, after: Progress, status: str) -> list[TableNote]:
    """That every row of a table is read, where that is so."""
    request = before.queue[0]
    is_over = status in (DONE, EMPTY) and after.queue[:1] != before.queue[:1] and after.incomplete == before.incomplete
    if not is_over or request.whole is None:
        return []
    return [TableNote(request.id(config), request=request.signal, total=before.rows)]


def _notice(type_: str, progress: Progress, data: tuple[tuple[str, str], ...]) -> Notice:
    signal = next(request.signal for request in progress.queue if request.kind == INCREMENTAL)
    return Notice(notifications.INCREMENTAL, type_, data, signal)
