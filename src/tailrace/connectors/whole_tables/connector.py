"""The part of a connector that is the same for all databases whose tables are given whole, and its administration.

A database implements WholeSource (source.py), the identity, and `changes`. Its log has transactions in the order of
their positions, which are values with `to_text`, in that order as well, and begins and ends at positions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.finding import Finding
from tailrace.connectors.log_ports import Committed
from tailrace.connectors.offset import Reached
from tailrace.connectors.ports import SourceState, TableOverview
from tailrace.connectors.shared_log import LogGap, SharedLogAdmin, SharedLogConnector
from tailrace.connectors.snapshot_ports import Failures
from tailrace.connectors.snapshots import Fence, Flags
from tailrace.connectors.table_split import TableSplit
from tailrace.connectors.whole_tables.now import WholeNow
from tailrace.connectors.whole_tables.snapshots import WholeFailures, WholeSnapshots, read
from tailrace.connectors.whole_tables.source import WholeSource
from tailrace.connectors.whole_tables.tables import WholeTable, captured_tables
from tailrace.errors import OffsetError
from tailrace.model.arrow import flags
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override


@dataclass(frozen=True)
class LogRange:
    """Implements LogEnd, and is what a task reads: the log of (start, position].

    `asked_us` is when the end was asked for, in microseconds since 1970 by this machine's clock.
    """

    start: Any
    position: Any
    asked_us: int = 0


@dataclass(frozen=True)
class PositionFence(Fence):
    """Implements Fence: the position, as text, as of which a chunk was read."""

    text: str

    @override
    def supersedes(self, batch: ChangeBatch) -> Flags:
        return flags(pc.greater(batch.rows.column(COMMIT), self.text))


class WholeTablesConnector(SharedLogConnector, WholeSource):
    """Implements Connector. Executors run its methods on an instance made of the config alone."""

    failures: ClassVar[Failures] = WholeFailures()

    @property
    @override
    def snapshots(self) -> WholeSnapshots:
        return WholeSnapshots(self, self.failures)

    @override
    def text(self, position: Any) -> str:
        text: str = position.to_text()
        return text

    @override
    def tables(self, config: Config) -> list[TableSchema]:
        return [table.schema for table in captured_tables(config, self.whole(self.position_now())).values()]

    @override
    def log_end(self) -> LogRange:
        asked_us = time.time_ns() // 1000
        return LogRange(self.log_begin(), self.position_now(), asked_us)

    @override
    def committed(self, end: LogRange) -> Committed:
        return Committed(end.asked_us, end.position)

    @override
    def lost(
        self, reached: Reached, end: Reached | None = None, *, position: Any = None, is_routine: bool = False
    ) -> LogGap | None:
        needed, begin = self.needed(reached, position), self.log_begin()
        if needed is None or not needed < begin:
            return None
        remedy = "begin with a new checkpoint, or set snapshot.mode to when_needed"
        what = f"the log from {self.text(needed)} to {self.text(begin)} was removed"
        return LogGap(OffsetError(what, where=self.identity, remedy=remedy))

    @override
    def ranges(self, config: Config, start: Reached, begin: Any, end: Reached, *, is_whole: bool) -> list[LogRange]:
        return [LogRange(begin, end.position)]

    @override
    def fence(self, text: str) -> PositionFence:
        return PositionFence(text)

    @override
    def rows(self, config: Config, split: TableSplit) -> Iterator[Chunk]:
        return read(self, config, split)


class WholeTablesAdmin(SharedLogAdmin):
    """Implements Admin; a database sets `connector`."""

    connector: ClassVar[type[WholeTablesConnector]]

    @property
    def _source(self) -> WholeTablesConnector:
        return self.connector(self.config)

    def _now(self) -> Mapping[TableId, WholeTable]:
        return self._source.whole(self._source.position_now())

    @override
    def server_findings(self) -> list[Finding]:
        return [Finding("tables", True, f"{len(captured_tables(self.config, self._now()))} tables are captured")]

    @override
    def overview(self) -> list[TableOverview]:
        tables = self._now()
        return [
            TableOverview(id_, tables[id_].rows.num_rows, tables[id_].rows.nbytes, bool(tables[id_].key))
            for id_ in sorted(tables)
        ]

    @override
    def state(self, pipeline: str | None = None) -> SourceState:
        return SourceState(self._source.position_now())

    @override
    def now(self) -> AbstractContextManager[WholeNow]:
        return nullcontext(WholeNow(self._source))
