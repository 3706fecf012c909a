"""Snapshots of tables that are given whole: each table is one split, and reads the same whenever it is read."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.connectors.base import Chunk
from tailrace.connectors.notifications import notify
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS
from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import NotSignals, SignalSource, SignalTable, Stored
from tailrace.connectors.snapshot_ports import Cuts, Failures, OnDemandSnapshots
from tailrace.connectors.snapshots import SnapshotGone, SnapshotPlace
from tailrace.connectors.table_split import TableSplit
from tailrace.connectors.whole_tables.chunks import WholeSession
from tailrace.connectors.whole_tables.source import WholeSource
from tailrace.connectors.whole_tables.tables import CapturedRows, WholeTable, captured_rows, captured_tables
from tailrace.errors import SourceError
from tailrace.model.arrow import repeat
from tailrace.model.change import READ, ChangeBatch, SnapshotRead
from tailrace.model.table import TableId
from tailrace.override import override

# A change of a key is two events, so the log leaves every other number free; a snapshot has the same numbers.
ORDER_STEP = 2
_SIGNAL_COLUMNS = ["id", "type", "data"]


@dataclass(frozen=True)
class Moment:
    """Implements SnapshotHandle: a position of a connector, and a name that no other snapshot has."""

    connector: Callable[[Config], WholeSource]
    position: Any
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @override
    def __str__(self) -> str:
        return self.name

    def is_valid(self, config: Config) -> bool:
        """Whether the log still has the position."""
        return not self.position < self.connector(config).log_begin()

    def close(self) -> None:
        """Nothing keeps the rows of a position."""


def read(source: WholeSource, config: Config, split: TableSplit) -> Iterator[Chunk]:
    """What Connector.rows gives: a split is a whole table."""
    position = split.moment.position
    # The config need not capture a table that a signal asks for.
    table = captured_rows(config, split.table, source.whole(position)[split.table])
    assert table is not None
    read = split.read_at(position.to_text())
    rows = _batch(source, table, position, read)
    yield Chunk([], controls=notify(config, split.before))
    yield Chunk([*split.marked([rows])] if len(rows) else [rows])
    yield Chunk([], controls=notify(config, [each.with_rows(table.rows.num_rows) for each in split.after]))


def _batch(source: WholeSource, table: CapturedRows, position: Any, read: SnapshotRead) -> ChangeBatch:
    size, images = table.rows.num_rows, table.images()
    columns = {
        "op": repeat(READ, size),
        "order": pa.array(ORDER_STEP * np.arange(size, dtype=np.int64)),
        "ts_us": pa.repeat(pa.scalar(time.time_ns() // 1000, pa.int64()), size),
        "snapshot": repeat("true", size),
        "source": source.source_of(position, size),
        "before": pa.nulls(size, images.type),
        "after": images,
    }
    return ChangeBatch(table.schema, pa.RecordBatch.from_pydict(columns), read)


class WholeFailures(Failures):
    """What goes wrong in the file system is an error of the driver."""

    driver_error = OSError


@dataclass(frozen=True)
class WholeSnapshots(OnDemandSnapshots):
    """Implements OnDemandSnapshots."""

    source: WholeSource
    failures: Failures

    def _tables(self, config: Config, *, first: bool = False) -> dict[TableId, CapturedRows]:
        return captured_tables(config, self.source.whole(self.source.position_now()), first=first)

    @override
    def tables(self, config: Config) -> list[TableId]:
        return [*self._tables(config)]

    @override
    def sizes(self, config: Config) -> list[tuple[str, int]]:
        return [(str(id_), table.rows.nbytes) for id_, table in self._tables(config, first=True).items()]

    @override
    def open_at_log(self, config: Config, start: Reached, end: Reached) -> Moment:
        return Moment(type(self.source), self.source.parse(end.log[BEGINS]))

    @override
    def open_now(self, config: Config) -> Moment:
        return Moment(type(self.source), self.source.position_now())

    @override
    def cut(
        self,
        config: Config,
        handle: Moment,
        wanted: Mapping[str, str | None] | None,
        place: SnapshotPlace | None,
        plan: Callable[[Cuts], list[TableSplit]],
    ) -> list[TableSplit]:
        """Raises SourceError for a signal with a SELECT, which nothing here could run."""
        if wanted is not None and any(wanted.values()):
            what = "this source takes no conditions in blocking snapshots"
            raise SourceError(what, where=", ".join(wanted), remedy="send the signal without additional-conditions")
        if not handle.is_valid(config):
            raise SnapshotGone("the log has moved past the snapshot", where=self.source.identity)
        return plan(WholeCuts(config, handle, self.source.whole(handle.position)))

    @override
    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        config = self.source.config
        table = table_of_signals(config)
        tables = {} if table is None else {table.database: WholeSignals(table)}
        return SignalSource(config, self.failures, tables).new(self.source, handled)

    @override
    def chunks(self, config: Config) -> AbstractContextManager[WholeSession]:
        return nullcontext(WholeSession(self.source, config))

    @override
    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        present = self.source.whole(self.source.position_now())
        return [table for table in tables if table in present]


class WholeCuts(Cuts):
    """Implements Cuts: a table is one split."""

    def __init__(self, config: Config, moment: Moment, tables: Mapping[TableId, WholeTable]) -> None:
        self._config, self._moment, self._now = config, moment, tables

    @override
    def tables(self) -> list[TableId]:
        return [*captured_tables(self._config, self._now)]

    @override
    def to_read(self) -> list[TableId]:
        return [*captured_tables(self._config, self._now, first=True)]

    @override
    def splits(self, table: TableId, resumed: SnapshotPlace | None) -> list[TableSplit]:
        return [TableSplit(self._moment, table, self._now[table].rows.nbytes)]

    @override
    def has_rows(self, split: TableSplit) -> bool:
        return bool(self._now[split.table].rows.num_rows)


@dataclass(frozen=True)
class WholeSignals(SignalTable):
    """Implements SignalTable; nothing looks for windows in the log, so that no rows are written."""

    table: TableId

    @property
    @override
    def name(self) -> str:
        return str(self.table)

    @override
    def read(self, connection: WholeSource, limit: int) -> list[Stored]:
        table = connection.whole(connection.position_now()).get(self.table)
        if table is None or table.rows.column_names != _SIGNAL_COLUMNS:
            raise NotSignals(
                f"{self.table} needs the columns {', '.join(_SIGNAL_COLUMNS)}",
                where="signal.data.collection",
                remedy="create the table with these columns, or name another one",
            )
        return [(Signal(**row), None) for row in table.rows.slice(0, limit).to_pylist()]
