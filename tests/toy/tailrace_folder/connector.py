"""The folder's log as the planner and the tasks use it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.log_ports import Committed
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import LogGap, SharedLogConnector
from tailrace.errors import OffsetError
from tailrace.model.table import TableSchema
from tailrace_folder import rows
from tailrace_folder.log import Line, Log
from tailrace_folder.options import FOLDER_PATH
from tailrace_folder.snapshots import Fence, FolderSnapshots, read


@dataclass(frozen=True)
class LogRange:
    """Implements LogEnd, and is what a task reads: the lines of (start, position].

    `asked_us` is when the end was looked for, in microseconds since 1970.
    """

    start: Line
    position: Line
    asked_us: int = 0


class FolderConnector(SharedLogConnector):
    """Implements Connector. A position is a Line."""

    source, source_type = rows.SOURCE, rows.SOURCE_TYPE
    text = staticmethod(Line.to_text)
    parse = staticmethod(Line.from_text)
    fence = staticmethod(Fence)
    rows = staticmethod(read)

    @property
    def snapshots(self) -> FolderSnapshots:
        return FolderSnapshots(self.config)

    @property
    def identity(self) -> str:
        return self.config[FOLDER_PATH]

    def within(self, start: Line, end: Line, limit: int) -> Line:
        """At least one line."""
        last, size = start, 0
        for line, _, length in Log.of(self.config).lines(start):
            size += length
            if size > limit and last != start:
                break
            last = line
        return min(end, last)

    def tables(self, config: Config) -> list[TableSchema]:
        return [table.captured.schema for table in rows.tables(config, Log.of(config).now())]

    def log_end(self) -> LogRange:
        log, now = Log.of(self.config), time.time_ns() // 1000
        return LogRange(log.begin, log.end(), now)

    def committed(self, end: LogRange) -> Committed:
        return Committed(end.asked_us, end.position)

    def lost(
        self, here: Reached, end: Reached | None = None, *, position: Line | None = None, is_routine: bool = False
    ) -> LogGap | None:
        at, begin = self.needed(here, position), Log.of(self.config).begin
        if at is not None and at < begin:
            remedy = "begin with a new checkpoint, or set snapshot.mode to when_needed"
            what = f"the log from {at.to_text()} to {begin.to_text()} was removed"
            return LogGap(OffsetError(what, where=self.identity, remedy=remedy))
        return None

    def ranges(self, config: Config, start: Reached, begin: Line, end: Reached, *, is_whole: bool) -> list[LogRange]:
        return [LogRange(begin, end.position)]

    @staticmethod
    def changes(config: Config, wanted: LogRange) -> Iterator[Chunk]:
        yield rows.changes(config, wanted.start, wanted.position)
