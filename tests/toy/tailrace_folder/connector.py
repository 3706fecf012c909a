"""The folder's log as the planner and the tasks use it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.log_ports import Connector
from tailrace.connectors.offset import Reached
from tailrace.errors import OffsetError, SourceError
from tailrace.model.table import TableSchema
from tailrace_folder import rows
from tailrace_folder.log import Line, Log
from tailrace_folder.snapshots import Fence, FolderSnapshots, read


@dataclass(frozen=True)
class LogRange:
    """Implements LogEnd, and is what a task reads: the lines of (start, position]."""

    start: Line
    position: Line


@dataclass(frozen=True)
class Gap:
    """Implements Lost."""

    what: str
    where: str
    is_foreign = False
    is_trusted = False

    def __str__(self) -> str:
        return self.what

    def error(self) -> OffsetError:
        remedy = "begin with a new checkpoint, or set snapshot.mode to when_needed"
        return OffsetError(self.what, where=self.where, remedy=remedy)


class FolderConnector(Connector):
    """Implements Connector. A position is a Line."""

    source, source_type = rows.SOURCE, rows.SOURCE_TYPE
    text = staticmethod(Line.to_text)
    parse = staticmethod(Line.from_text)
    fence = staticmethod(Fence)
    rows = staticmethod(read)

    def __init__(self, config: Config) -> None:
        self.config = config
        self._held: Any = None

    @property
    def snapshots(self) -> FolderSnapshots:
        return FolderSnapshots(self.config)

    @property
    def identity(self) -> str:
        return self.config.text("folder.path")

    def within(self, start: Line, limit: int) -> Line:
        """At least one line."""
        end, size = start, 0
        for line, _, length in Log.of(self.config).lines(start):
            size += length
            if size > limit and end != start:
                break
            end = line
        return end

    def hold(self, application: str) -> None:
        """By a lock on a file beside the reader's."""
        if self._held is None:
            file = Log.of(self.config).reader.with_suffix(".lock").open("a")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                remedy = "stop that run, or give this one a folder.reader of its own"
                raise SourceError("another run reads as this reader", where=self.identity, remedy=remedy) from error
            self._held = file

    def tables(self, config: Config) -> list[TableSchema]:
        return [table.captured.schema for table in rows.tables(config, Log.of(config).now())]

    def log_end(self) -> LogRange:
        log = Log.of(self.config)
        return LogRange(log.begin, log.end())

    def begins(self, here: Reached) -> Line:
        lost = self.lost(here)
        if lost is not None:
            raise lost.error()
        return Log.of(self.config).kept()

    def lost(
        self, here: Reached, end: Reached | None = None, *, position: Line | None = None, is_routine: bool = False
    ) -> Gap | None:
        log = Log.of(self.config)
        if not log.reader.exists():
            return Gap(f"the reader {log.reader.stem} does not exist", self.identity)
        at = position or here.position or log.kept()
        if at < log.begin:
            return Gap(f"the log from {at.to_text()} to {log.begin.to_text()} was removed", self.identity)
        return None

    def give_up(self, here: Reached) -> None:
        Log.of(self.config).reader.unlink(missing_ok=True)

    def range(self, start: Reached, begin: Line, end: Reached) -> LogRange:
        return LogRange(begin, end.position)

    @staticmethod
    def changes(config: Config, wanted: LogRange) -> Iterator[Chunk]:
        """Nobody needs what is before the range any more."""
        Log.of(config).keep(wanted.start)
        yield rows.changes(config, wanted.start, wanted.position)

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
