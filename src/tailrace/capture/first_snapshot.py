"""Decides when whole tables are read: at the first start, again at a later start, or because the log is lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from tailrace.capture.offset import Offset
from tailrace.config import Config
from tailrace.config.options.snapshot import SNAPSHOT_MODE
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.captured_lists import ENTRY
from tailrace.connectors.log_ports import Connector, LogEnd
from tailrace.connectors.offset import BEGIN, SNAPSHOT, WITHOUT_ROWS
from tailrace.connectors.retry import retrying
from tailrace.errors import ConfigError
from tailrace.snapshot.initial import InitialSnapshot
from tailrace.snapshot.reading import Reading

log = logging.getLogger(__name__)


class FirstSnapshot:
    """The part of the planner that reads whole tables before the log."""

    def __init__(self, connector: Connector, mode: SnapshotMode) -> None:
        self._connector = connector
        self._mode = mode
        self._initial = InitialSnapshot(connector.config, connector.snapshots)
        self._is_transient = connector.snapshots.failures.is_transient

    @property
    def config(self) -> Config:
        """The configuration, with the tables that are captured by now."""
        return self._initial.config

    @config.setter
    def config(self, config: Config) -> None:
        self._initial.config = config

    @property
    def has_begun(self) -> bool:
        """Whether this process plans the snapshot already."""
        return self._initial.has_begun

    def next(self, reached: Offset, log_end: LogEnd, *, is_start: bool, limit: int | None) -> Offset | None:
        """The offset behind the next batch of a snapshot, None if there is nothing to read.

        Raises OffsetError where the log from here on is lost and no snapshot comes instead.
        """
        if reached.phase == BEGIN:
            return self._first(reached, log_end)
        if reached.phase == SNAPSHOT and reached.reading is not None:
            if not self._initial.has_begun and self._is_lost_amid(reached):
                return self._again(reached, log_end)
            following = self._next_batch(reached, reached.reading, limit)
            if following != reached:
                return following
        if self._mode.streams and self._reads_again(reached, is_start=is_start):
            return (
                self._again(reached, log_end)
                if self._reads_rows_again(is_start)
                else self._without_rows(reached, log_end)
            )
        return None

    def begins(self, reached: Offset) -> Any:
        """Where the log continues: at the offset's position, or where its snapshot was taken.

        Nothing of ours moves that place before the first range of the log is committed. If it was moved all the same,
        the reader that starts at the snapshot's position finds out. Raises OffsetError if the log is lost.
        """
        if reached.position is not None:
            return reached.position
        return self._initial.log_begins if self._initial.log_begins is not None else self._connector.begins(reached)

    @staticmethod
    def continues(start: Offset, end: Offset) -> bool:
        """Whether the batch from `start` to `end` continues a snapshot of several batches."""
        return start.phase == SNAPSHOT and start.reading is not None and start.ts_us == end.ts_us

    def has_rows(self, start: Offset, end: Offset) -> bool:
        """Whether the first batch of a snapshot, from `start` to `end`, reads tables."""
        return self._mode.at_first if start.phase == BEGIN else WITHOUT_ROWS not in end.log

    def begin(self, start: Offset, end: Offset) -> Sequence[Any]:
        """The splits of the first batch, which prepares the log."""
        return retrying(self.config, lambda: self._initial.begin(start, end, end.reading), self._is_transient)

    def splits(self, end: Offset) -> Sequence[Any]:
        """The splits of a later batch."""
        return self._initial.splits(end.reading)

    def is_lost_meanwhile(self, start: Offset, end: Offset) -> bool:
        """Whether a range that an earlier process planned is lost, so that a new snapshot replaces it.

        What keeps the log is dropped, so that the snapshot is taken whatever happens before that.
        """
        lost = self._connector.lost(start, end) if self._mode.when_lost else None
        if lost is None:
            return False
        if lost.is_foreign:
            raise lost.error()
        log.warning("the last batch planned reads nothing, as the position is lost: %s", lost)
        self._connector.give_up(start)
        return True

    def close(self) -> None:
        """Close the snapshot."""
        self._initial.close()

    def _first(self, reached: Offset, log_end: LogEnd) -> Offset:
        """The offset behind the first batch. It is stored before that batch prepares the log. Raises SourceError."""
        if not self._mode.begins:
            raise ConfigError(
                "there is no position to continue from: nothing was read under this checkpoint",
                where=f"snapshot.mode={self.config[SNAPSHOT_MODE]}",
                remedy="set snapshot.mode to initial or no_data, or the checkpoint of a pipeline that has begun",
            )
        taken = self._connector.taken_over(log_end)
        position, remembered = taken or self._connector.first(log_end, reads_tables=self._mode.at_first)
        reading = self._initial.first() if self._mode.at_first else None
        return reached.at(phase=SNAPSHOT, position=position, log=remembered, reading=reading)

    def _again(self, reached: Offset, log_end: LogEnd) -> Offset:
        """The offset behind the first batch of a new snapshot. It is stored before that batch prepares the log."""
        remembered = self._connector.again(reached, log_end)
        # The time distinguishes this snapshot from one before it.
        again = reached.at(phase=SNAPSHOT, position=None, ts_us=time.time_ns() // 1000, log=remembered)
        return again.at(reading=self._initial.first())

    def _without_rows(self, reached: Offset, log_end: LogEnd) -> Offset:
        """The offset behind the first batch of a log that continues at its end, after a position that is lost."""
        position, remembered = self._connector.first(log_end, reads_tables=False)
        remembered = {**remembered, WITHOUT_ROWS: True}
        return reached.at(phase=SNAPSHOT, position=position, ts_us=time.time_ns() // 1000, log=remembered, reading=None)

    def _reads_rows_again(self, is_start: bool) -> bool:
        """Whether a new snapshot has rows, as the first one has; a log of the pipeline's own begins with one."""
        is_asked = self._mode.at_first or (self._mode.at_start and is_start)
        return is_asked or not self._connector.continues_without_rows

    def _is_lost_amid(self, reached: Offset) -> bool:
        """Whether a snapshot of several batches that another process began must start again. Raises OffsetError."""
        lost = self._connector.lost(reached)
        if lost is not None and lost.is_foreign:
            raise lost.error()
        if lost is not None:
            log.warning("the snapshot starts again from the beginning: %s", lost)
        return lost is not None

    def _next_batch(self, reached: Offset, reading: Reading, limit: int | None) -> Offset:
        """After a restart first the log up to the new snapshot, then what is left.

        The position of the snapshot at which the log begins is written down once rows read under it are committed.
        """
        resumed = retrying(self.config, lambda: self._initial.resume(reached.application, reading), self._is_transient)
        begun = self._initial.log_begins
        if resumed is not None and begun is not None:
            following = self._initial.next(reading)
            is_first = following.undo is not None and following.undo.is_whole
            return reached.at(reading=following) if is_first else self._at(reached, begun, begun).at(reading=following)
        start = self.begins(reached)
        if resumed is None or resumed <= start:
            return reached.at(reading=self._initial.next(reading))
        return self._at(reached, start, resumed if limit is None else self._connector.within(start, resumed, limit))

    def _at(self, reached: Offset, start: Any, to: Any) -> Offset:
        """The offset at a position, with the lists of tables as they are: without them it would never be the same."""
        advanced = self._connector.advanced(self.config, reached, start, to, None)
        kept = {ENTRY: reached.log[ENTRY]} if ENTRY in reached.log else {}
        return reached.at(position=to, log={**advanced, **kept})

    def _reads_again(self, reached: Offset, *, is_start: bool) -> bool:
        """Whether the tables are to be read again. Raises OffsetError where the log from here on is lost instead."""
        begins = self._initial.log_begins
        since = begins if reached.position is None else None
        lost = self._connector.lost(reached, position=since, is_routine=True)
        if lost is not None and lost.is_foreign and not lost.is_trusted:
            raise lost.error()
        if self._mode.at_start and is_start and begins is None:
            return True
        if lost is not None and self._mode.when_lost:
            said = "a new snapshot is taken" if self._reads_rows_again(is_start) else "the log continues at its end"
            log.warning("the position is lost: %s; %s", lost, said)
            return True
        if lost is not None and not lost.is_trusted:
            raise lost.error()
        return False
