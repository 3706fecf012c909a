"""Plans micro-batches: how far the next one reaches, and what its tasks read.

`head` goes through its steps in a fixed order, and each says why it has its place. What is planned is written into
Spark's checkpoint before it is read, so an offset contains everything that another process needs to plan it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tailrace.capture.complete import CompleteUntil
from tailrace.capture.first_snapshot import FirstSnapshot
from tailrace.capture.lag import Lag
from tailrace.capture.log_split import LogSplit
from tailrace.capture.offset import Offset
from tailrace.capture.table_watch import TableWatch
from tailrace.config import Config
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.config.options.snapshot import (
    HEARTBEAT_ACTION_QUERY,
    HEARTBEAT_INTERVAL_MS,
    SIGNAL_DATA_COLLECTION,
    SNAPSHOT_DELAY_MS,
    STREAMING_DELAY_MS,
)
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.log_ports import Connector, LogEnd
from tailrace.connectors.notifications import SKIPPED, Notice
from tailrace.connectors.offset import BEGIN, SNAPSHOT, STREAM
from tailrace.connectors.retry import pause
from tailrace.errors import SourceError
from tailrace.snapshot.channels import Channels
from tailrace.snapshot.requested import NextBatch, RequestedSnapshots
from tailrace.snapshot.signals import table_of
from tailrace.snapshot.table_note import TableNote

log = logging.getLogger(__name__)


class Planner:
    """Plans for one process. Its state is what the connector keeps open, and what its snapshots have planned."""

    def __init__(self, connector: Connector, *, joins_topics: bool) -> None:
        self.config = connector.config
        # Whether the order of changes across tables is visible.
        self._is_ordered = joins_topics or self.config[PROVIDE_TRANSACTION_METADATA]
        self._connector = connector
        self._failures = connector.snapshots.failures
        self._mode = SnapshotMode.of(self.config)
        self._first = FirstSnapshot(connector, self._mode)
        has_signals = self.config[SIGNAL_DATA_COLLECTION] or Channels.are_configured(self.config)
        self._adhoc = RequestedSnapshots(self.config, connector.snapshots) if has_signals else None
        self._tables = TableWatch(connector)
        self._kept: tuple[dict[str, Any], NextBatch] | None = None
        self._has_started = False
        self._notices: tuple[Notice, ...] = ()
        self._log_end: LogEnd | None = None
        self._lag, self._complete = Lag(), CompleteUntil()

    def horizon(self, reached: Offset) -> Any:
        """Where the log ends now. The tables are looked at before, so that the log up to there is newer."""
        self._use(reached)
        self._look(reached)
        position = self._connector.log_end().position
        self._tables.ended(position)
        return position

    def head(self, reached: Offset, limit: int | None, until: Any) -> Offset:
        """The offset behind the next batch; `reached` itself, the same object, if there is nothing new.

        Raises OffsetError for a log that is lost, SourceError.
        """
        # First of all, so that no other run plans for the same log.
        self._connector.hold(reached.application)
        self._use(reached)
        warnings = self._watched(reached)
        is_start, self._has_started = not self._has_started, True
        if is_start:
            self._connector.check_start(self.config)
        # Before the position is compared with the server's log, so that only a compared log is planned.
        self._look(reached)
        log_end = self._log_end = self._connector.log_end()
        self._tables.ended(log_end.position)
        self._complete.look(self._connector.committed(log_end))
        if reached.phase == STREAM and reached.ts_us is not None:
            self._lag.look(reached.ts_us / 1e6, reached.position)
        self._lag.look(time.time(), log_end.position)
        if reached.phase == SNAPSHOT and not self._first.has_begun:
            self._tables.look_before(self.config, reached)
        offset = self._first.next(reached, log_end, is_start=is_start, limit=limit)
        if offset is not None:
            offset = offset.at(log=self._tables.noted(reached.log, offset.log))
        if offset is not None and reached.phase == BEGIN and self._adhoc is not None:
            return offset.at(progress=self._adhoc.before())
        if offset is not None:
            return offset
        if not self._mode.streams:
            return reached
        self._first.close()
        if reached.phase == SNAPSHOT:
            pause(self.config, STREAMING_DELAY_MS)
        if is_start and reached.phase == STREAM:
            self._notices = self._connector.notices_at_restart
        return self._next_of_log(reached, log_end, limit, until, warnings, is_start=is_start)

    def behind(self, offset: Offset) -> dict[str, Any] | None:
        """What is left of the log behind an offset that `head` gave, for Spark's progress; None before `head`."""
        if self._log_end is None:
            return None
        end, now = self._log_end, time.time()
        position = offset.position if offset.phase == STREAM else None
        left: dict[str, Any] = {"position": self._connector.text(end.position)}
        if position is not None:
            left["lag_ms"] = round(self._lag.seconds(now, position) * 1000)
            if (until := self._complete.at(position)) is not None:
                left["complete_us"] = until
        return left | dict(self._connector.measures(position, end))

    def plan(self, start: Offset, end: Offset) -> Sequence[Any]:
        """The splits of the batch from `start` to `end`, which an earlier process may have planned."""
        self._connector.hold(end.application)
        self._use(end)
        if start == end:
            return []
        if end.phase == SNAPSHOT:
            if not self._first.continues(start, end):
                return self._begin_log(start, end)
            if end.position is None or end.position == self._first.begins(start):
                return self._with_base(self._first.splits(end))
        if not self._has_started and self._first.is_lost_meanwhile(start, end):
            return []
        step = self._step_to(end)
        return step.splits if step.splits is not None else self._log_splits(start, end, step)

    def close(self) -> None:
        """Close snapshots."""
        self._first.close()
        if self._adhoc is not None:
            self._adhoc.close()

    def _step_to(self, end: Offset) -> NextBatch:
        """What the batch up to an offset does beside the log; nothing where another process planned it."""
        if self._kept is None or self._kept[0] != end.to_json(self._connector.text):
            return NextBatch()
        return self._kept[1]

    def _use(self, reached: Offset) -> None:
        """Use the tables that are captured at a position in what follows."""
        if self._adhoc is not None:
            self._capture(self._adhoc.use(reached.progress))

    def _capture(self, config: Config) -> None:
        self.config = self._first.config = config

    def _watched(self, reached: Offset) -> tuple[str, ...]:
        """Warnings about what the log has of the captured tables. Raises SourceError where changes are lost.

        Before anything is planned, as that would continue without them.
        """
        if reached.phase == BEGIN or not self._mode.streams:
            return ()
        watched = self._connector.watch(self.config)
        if watched.late and self._adhoc is not None:
            self._adhoc.late = watched.late
        return watched.warnings

    def _look(self, reached: Offset) -> None:
        """Compare the catalogue with what was sent of the tables; not while a first snapshot describes them."""
        if reached.phase == STREAM and self._mode.streams:
            self._tables.look(self.config, reached)

    def _next_of_log(
        self,
        reached: Offset,
        log_end: LogEnd,
        limit: int | None,
        until: Any,
        warnings: tuple[str, ...],
        *,
        is_start: bool,
    ) -> Offset:
        """The offset behind the next range of the log, with what a signal requests."""
        start = self._first.begins(reached)
        end = self._furthest(start, log_end.position, limit, until)
        now = time.time_ns() // 1000
        is_due = self._is_heartbeat_due(reached, now)
        if is_due:
            # The statement may write to a table that is captured, which the next batch then has.
            self._act()
        if self._adhoc is not None:
            self._adhoc.is_bounded = until is not None
        step = self._step(reached, start, warnings, is_start=is_start, is_behind=end < log_end.position)
        if step.end is not None:
            # A chunk ends after the log's end was queried, so the clock is read again.
            end, log_end = step.end, self._connector.clock_again(log_end)
        # The position of a snapshot is stored at once, even if no change follows it.
        end = max(end, start)
        has_notes = self._tables.is_due(end)
        is_needed = step.moves or has_notes or (until is None and is_due)
        if end == start and reached.phase == STREAM and not is_needed:
            return reached
        advanced = self._connector.advanced(self.config, reached, start, end, log_end)
        advanced = self._tables.noted(reached.log, advanced)
        if has_notes:
            step = replace(step, notes=(*step.notes, *self._tables.take(self.config)))
        offset = reached.at(phase=STREAM, position=end, ts_us=now, log=advanced, progress=step.progress, reading=None)
        self._kept = offset.to_json(self._connector.text), step
        return offset

    def _furthest(self, start: Any, newest: Any, limit: int | None, until: Any) -> Any:
        """How far the next batch may read."""
        end = newest if until is None else min(newest, until)
        return self._connector.within(start, end, limit) if limit else end

    def _step(
        self, reached: Offset, start: Any, warnings: tuple[str, ...], *, is_start: bool, is_behind: bool
    ) -> NextBatch:
        """What signals request; called after the log's end was queried, as chunks end at later positions."""
        if self._adhoc is None:
            return NextBatch()
        stored = reached.to_json(self._connector.text)
        step = self._adhoc.step(reached.progress, stored, start, is_start, is_behind=is_behind, warnings=warnings)
        self._capture(self._adhoc.config)
        return step

    def _begin_log(self, start: Offset, end: Offset) -> Sequence[Any]:
        """Prepare the log; read the tables if snapshot.mode says so, which it has where `start` has a position.

        Planned again after a restart this begins again, under a new snapshot, from whose position on the log is read.
        The pipeline's name is that of `end`, which is stored: of a first batch Spark asks for `start` again and again.
        """
        pause(self.config, SNAPSHOT_DELAY_MS)
        if start.phase == BEGIN:
            self._connector.check_first(start, end, is_retry=self._first.has_begun)
        if not self._first.has_rows(start, end):
            self._connector.open_log(self.config, start, end)
            self._notices = self._connector.notices_without_rows
            return []
        self._tables.look_before(self.config, end)
        return self._with_base(self._first.begin(start, end))

    def _with_base(self, splits: Sequence[Any]) -> Sequence[Any]:
        """The splits of a snapshot, and what the catalogue said of their tables before it."""
        notes = self._tables.base(name for split in splits for name in split.names)
        return [*splits, LogSplit(None, tables=self.config.tables, notes=notes)] if notes else splits

    def _log_splits(self, start: Offset, end: Offset, step: NextBatch) -> Sequence[LogSplit]:
        """The range of the log, for several tasks if no order across tables is visible; the last split has all else."""
        # A chunk is compared with the changes of its batch.
        is_whole = self._is_ordered or step.chunk is not None
        parts = self._connector.ranges(self.config, start, self._first.begins(start), end, is_whole=is_whole)
        is_due = end.ts_us is not None and self._is_heartbeat_due(start, end.ts_us)
        heartbeat = end.ts_us // 1000 if end.ts_us is not None and is_due else None
        notices, self._notices = (*self._notices, *step.notices), ()
        untouched = () if start.reading is None else start.reading.untouched
        notes = (*step.notes, *_given_up(self.config, start, end))
        split = LogSplit(
            parts[-1], heartbeat, step.chunk, notices, tables=self.config.tables, untouched=untouched, notes=notes
        )
        first = LogSplit(None, tables=self.config.tables, untouched=untouched)
        return [*(replace(first, range=each) for each in parts[:-1]), split]

    def _is_heartbeat_due(self, since: Offset, now: int) -> bool:
        """Whether a multiple of heartbeat.interval.ms lies between two plannings.

        The first one follows the snapshot, unless that is skipped.
        """
        interval = self.config[HEARTBEAT_INTERVAL_MS] * 1000
        if interval <= 0:
            return False
        if since.ts_us is None:
            return self._mode.at_first or all(notice.type != SKIPPED for notice in self._connector.notices_without_rows)
        return now // interval > since.ts_us // interval

    def _act(self) -> None:
        """Run heartbeat.action.query. A failure is logged and does no harm to the stream, as in Debezium."""
        statement = self.config[HEARTBEAT_ACTION_QUERY]
        if statement:
            try:
                self._connector.execute(statement)
            except (SourceError, self._failures.driver_error) as error:
                said = "heartbeat.action.query failed: %s; correct it, or grant database.user what it needs"
                log.error(said, self._failures.line(error))


def _given_up(config: Config, start: Offset, end: Offset) -> list[TableNote]:
    """The tables that became incomplete within a batch, by its offsets alone."""
    before = () if start.progress is None else start.progress.incomplete
    after = () if end.progress is None else end.progress.incomplete
    new = [each for each in after if each not in before and not each.of_keys]
    return [TableNote(table_of(config, each.table), lacking=each.why) for each in new]
