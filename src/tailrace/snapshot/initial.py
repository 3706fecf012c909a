"""Plans the first snapshot: what the next micro-batch reads, and where a restart resumes.

What fits into one micro-batch is read by one, and again by one after a crash. A larger snapshot takes several; the
offset of each tells what is left after it (see snapshot/reading.py). What a batch reads is known here alone: planned
again by another process it reads nothing, and the next one reads its part again, under a snapshot of that process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tailrace.config import Config
from tailrace.config.overrides import unmatched
from tailrace.connectors.offset import Reached
from tailrace.connectors.snapshot_ports import SnapshotHandle, Snapshots, SnapshotSplit
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.connectors.split_sizes import BATCH_BYTES, SPLIT_BYTES, at_once, fits
from tailrace.errors import SourceError
from tailrace.snapshot.reading import Reading
from tailrace.snapshot.splits import planned

log = logging.getLogger(__name__)

# Batches grow or shrink towards this duration, at most by this factor at a time and up to this size.
_BATCH_SECONDS, _FACTOR, _MOST_BYTES = 30.0, 2.0, 16 << 30


class InitialSnapshot:
    """Plans for one planner process.

    `log_begins` is the position of the snapshot at which the log begins, if it was taken here.
    """

    def __init__(self, config: Config, server: Snapshots) -> None:
        self.config = config
        self.log_begins: Any = None
        self._server = server
        self._failures = server.failures
        self._export: SnapshotHandle | None = None
        self._left: list[SnapshotSplit] = []
        self._kept: tuple[Reading, list[SnapshotSplit]] | None = None
        self._is_resumed = False
        self._share = BATCH_BYTES
        self._since: float | None = None

    def first(self) -> Reading | None:
        """The state before anything is read; None where one micro-batch can read all."""
        captured = {str(table) for table in self._server.tables(self.config)}
        for what, remedy in unmatched(self.config, captured):
            log.warning("%s; remedy: %s", what, remedy)
        sizes = self._server.sizes(self.config)
        if fits(self.config, sizes):
            return None
        return Reading(SnapshotPlace(tuple(name for name, _ in sizes), is_whole=True))

    @property
    def has_begun(self) -> bool:
        """Whether this process plans the snapshot already."""
        return self._export is not None

    def begin(self, start: Reached, end: Reached, reading: Reading | None) -> Sequence[SnapshotSplit]:
        """The first batch: prepares the log. It reads all, or nothing where that takes several batches."""
        with self._failures.translated("the snapshot cannot be planned"):
            self.close()
            self._export = self._server.open_at_log(self.config, start, end)
            self.log_begins = self._export.position
            if reading is None:
                return planned(self._server, self.config, self._export)
            self._left = list(planned(self._server, self.config, self._export, place=reading.place))
        return []

    def resume(self, application: str, reading: Reading) -> Any:
        """The position of the snapshot that the next batch reads under; None if nothing is left.

        A process that has none yet, or whose own has ended, exports one for what is left before the last batch planned.
        """
        if self._left and self._export is not None and not self._export.is_valid(self.config):
            log.warning("the connection that held the exported snapshot has ended; what is left is read under another")
            self.close()
        place = reading.undo or reading.place
        if self._export is None and place.left:
            self.log_begins = None
            try:
                with self._failures.translated("the snapshot cannot be planned"):
                    self._resume(application, place)
            except SourceError:
                self.close()  # an incomplete plan must not be used by the next attempt
                raise
        return None if self._export is None else self._export.position

    def next(self, reading: Reading) -> Reading:
        """The state after the next batch; after the last one `reading` itself, without what is no longer needed."""
        before = reading.place if self._is_resumed else reading.undo or reading.place
        since = reading.since_ms, reading.since_splits
        if not self._is_resumed:
            since = time.time_ns() // 1_000_000, reading.splits
        self._is_resumed = True
        taken = self._take()
        if not taken:
            return reading.settled()
        touched = tuple(dict.fromkeys([*reading.touched, *(name for split in taken for name in split.names)]))
        done = reading.splits + len(taken)
        following = Reading(self._place(), before, touched, done, done + len(self._left), *since)
        self._kept = following, taken
        log.info("the snapshot reads %d splits, %d are left", len(taken), len(self._left))
        return following

    def splits(self, reading: Reading | None) -> Sequence[SnapshotSplit]:
        """The splits of the batch that ends in this state."""
        return self._kept[1] if self._kept is not None and self._kept[0] == reading else []

    def close(self) -> None:
        """Close the exported snapshot."""
        if self._export is not None:
            self._export.close()
            self._export = None
        self._left, self._kept, self._since, self._is_resumed = [], None, None, False

    def _resume(self, application: str, place: SnapshotPlace) -> None:
        self._export = self._server.open(self.config, application)
        place = self._server.verified(self.config, self._export, place)
        log.info("the snapshot resumes: %d tables are left, the first after %s", len(place.left), place.last)
        self._left = list(planned(self._server, self.config, self._export, place=place))

    def _take(self) -> list[SnapshotSplit]:
        """The splits of the next batch: as many as the last batches were fast, or as snapshot.max.threads says."""
        now, most = time.monotonic(), at_once(self.config)
        if self._since is not None:
            pace = _BATCH_SECONDS / max(now - self._since, 0.001)
            self._share = int(self._share * min(max(pace, 1 / _FACTOR), _FACTOR))
            self._share = min(max(self._share, SPLIT_BYTES), _MOST_BYTES)
        self._since = now
        taken: list[SnapshotSplit] = []
        room = self._share
        while self._left and (not taken or (self._left[0].bytes <= room and (most is None or len(taken) < most))):
            taken.append(self._left.pop(0))
            room -= taken[-1].bytes
        return taken

    def _place(self) -> SnapshotPlace:
        """What is left to read."""
        names = dict.fromkeys(name for split in self._left for name in split.names)
        point = self._left[0].resume_point if self._left else None
        return SnapshotPlace(tuple(names)) if point is None else replace(point, left=tuple(names))
