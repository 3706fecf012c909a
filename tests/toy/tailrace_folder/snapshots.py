"""Snapshots of the folder: its tables as of a line, which read the same whenever they are read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.connectors.base import Chunk, Key
from tailrace.connectors.notifications import notify
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS
from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import NotSignals, SignalSource, SignalTable, Stored
from tailrace.connectors.snapshot_ports import ChunkSession, ChunkTable, Cuts, Failures, OnDemandSnapshots
from tailrace.connectors.snapshots import Flags, PagingKey, SnapshotGone, SnapshotPlace, Unread
from tailrace.connectors.table_split import TableSplit
from tailrace.errors import SourceError
from tailrace.model.arrow import flags
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.table import TableId, TableSchema
from tailrace_folder import rows
from tailrace_folder.log import Line, Log, Row
from tailrace_folder.options import FOLDER_PATH


class FolderFailures(Failures):
    driver_error = OSError


@dataclass(frozen=True)
class Moment:
    """Implements SnapshotHandle: a line, and a name that no other snapshot has."""

    position: Line
    name: str

    def __str__(self) -> str:
        return self.name

    def is_valid(self, config: Config) -> bool:
        return Log.of(config).begin <= self.position

    def close(self) -> None:
        return


def read(config: Config, split: TableSplit) -> Iterator[Chunk]:
    """See Connector.rows: a split is a whole table."""
    at = split.moment.position
    table = rows.table(config, split.table, Log.of(config).tables(at)[split.table])
    assert table is not None
    yield Chunk([], controls=notify(config, split.before))
    yield rows.snapshot(table, at, split.read_at(at.to_text()))
    yield Chunk([], controls=notify(config, [each.with_rows(len(table.rows)) for each in split.after]))


@dataclass(frozen=True)
class Fence:
    """Implements connectors.snapshots.Fence: the line as of which a chunk was read."""

    line: str

    def supersedes(self, batch: ChangeBatch) -> Flags:
        return flags(pc.greater(batch.rows.column(COMMIT), self.line))


@dataclass(frozen=True)
class FolderSnapshots(OnDemandSnapshots):
    """Implements OnDemandSnapshots."""

    config: Config
    failures: Failures = FolderFailures()  # noqa: RUF009  # it has no state

    def tables(self, config: Config) -> list[TableId]:
        return [table.captured.schema.id for table in rows.tables(config, Log.of(config).now())]

    def sizes(self, config: Config) -> list[tuple[str, int]]:
        cuts = FolderCuts(config, self.open_now(config))
        return [(str(table), cuts.splits(table, None)[0].bytes) for table in cuts.to_read()]

    def open_at_log(self, config: Config, start: Reached, end: Reached) -> Moment:
        return Moment(Line.from_text(end.log[BEGINS]), uuid.uuid4().hex)

    def open_now(self, config: Config) -> Moment:
        return Moment(Log.of(config).end(), uuid.uuid4().hex)

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
            raise SourceError("a folder takes no conditions in blocking snapshots", where=", ".join(wanted))
        if not handle.is_valid(config):
            raise SnapshotGone("the log has moved past the snapshot", where=config[FOLDER_PATH])
        return plan(FolderCuts(config, handle))

    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        table = table_of_signals(self.config)
        tables = {} if table is None else {table.database: FolderSignals(table)}
        return SignalSource(self.config, self.failures, tables).new(Log.of(self.config), handled)

    def chunks(self, config: Config) -> AbstractContextManager[Session]:
        return nullcontext(Session(config))

    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        return [table for table in tables if table in Log.of(self.config).now()]


class FolderCuts(Cuts):
    """Implements Cuts: a table is one split."""

    def __init__(self, config: Config, moment: Moment) -> None:
        self._config, self._moment = config, moment
        self._now = Log.of(config).tables(moment.position)

    def tables(self) -> list[TableId]:
        return [table.captured.schema.id for table in rows.tables(self._config, self._now)]

    def to_read(self) -> list[TableId]:
        return [table.captured.schema.id for table in rows.tables(self._config, self._now, first=True)]

    def splits(self, table: TableId, resumed: SnapshotPlace | None) -> list[TableSplit]:
        return [TableSplit(self._moment, table, 100 * len(self._now[table].rows))]

    def has_rows(self, split: TableSplit) -> bool:
        return bool(self._now[split.table].rows)


@dataclass(frozen=True)
class FolderSignals(SignalTable):
    """Implements SignalTable; nobody looks for windows in a folder."""

    table: TableId

    @property
    def name(self) -> str:
        return str(self.table)

    def read(self, connection: Log, limit: int) -> list[Stored]:
        found = connection.now().get(self.table)
        if found is None or [*found.columns] != ["id", "type", "data"]:
            raise NotSignals(f"{self.table} needs the columns id, type, data", where="signal.data.collection")
        return [(Signal(**row), None) for row in found.rows[:limit]]


@dataclass(frozen=True)
class Session(ChunkSession):
    """Implements ChunkSession."""

    config: Config

    @contextmanager
    def table(self, table: TableId, name: str, condition: str | None) -> Iterator[TableAtLine]:
        log = Log.of(self.config)
        line = log.end()
        found = [each for each in rows.tables(self.config, log.tables(line)) if each.captured.schema.id == table]
        if not found:
            raise Unread("no such table is captured", "UNKNOWN_SCHEMA")
        yield TableAtLine(found[0], line)


@dataclass(frozen=True)
class TableAtLine(ChunkTable):
    """Implements ChunkTable: it ends where it is read, as the log up to there has nothing that the rows lack."""

    now: rows.Table
    line: Line

    @property
    def schema(self) -> TableSchema:
        return self.now.captured.schema

    def page(self, condition: str | None, surrogate: str | None) -> Paging:
        return Paging(self.now, condition, tuple(dict.fromkeys((*self.paged_by(surrogate), *self.schema.key))))

    def fence(self) -> str:
        return self.line.to_text()

    def end(self) -> Line:
        return self.line

    def rows_of(self, keys: Sequence[Key]) -> tuple[pa.StructArray, pa.StructArray]:
        found = by_key(self.now.rows, self.schema.key)
        gone = [keyed(self.schema.key, key) for key in keys if key not in found]
        return self.now.images([found[key] for key in keys if key in found]), self.now.images(gone)

    def source(self, count: int, end: Line) -> pa.StructArray:
        return pa.array([{"place": end.to_text()}] * count, rows.SOURCE_TYPE)


class Paging:
    """Implements Page. A condition is a JSON object of the values that a row must have."""

    def __init__(self, table: rows.Table, condition: str | None, names: tuple[str, ...]) -> None:
        self._table, self._condition, self._names = table, condition, names
        self.key_text = ",".join(names)
        self._rows = sorted(table.rows, key=self._place)

    def _place(self, row: Row) -> list[tuple[bool, Any]]:
        return _ordered(key_text(row, self._names))

    def check(self) -> None:
        try:
            wanted = json.loads(self._condition or "{}").items()
        except (ValueError, AttributeError) as error:
            raise SourceError("the condition is no JSON object", where=str(self._table.captured.schema.id)) from error
        self._rows = [row for row in self._rows if all(row.get(name) == value for name, value in wanted)]

    def estimate(self) -> int:
        return len(self._rows)

    def maximum(self) -> PagingKey | None:
        return key_text(self._rows[-1], self._names) if self._rows else None

    def after(
        self, last: PagingKey | None, maximum: PagingKey, size: int
    ) -> tuple[pa.StructArray, PagingKey | None, int]:
        above, most = _ordered(last or ()), _ordered(maximum)
        found = [row for row in self._rows if above < self._place(row) <= most][:size]
        return self._table.images(found), key_text(found[-1], self._names) if found else None, len(found)


def by_key(found: Sequence[Row], names: Sequence[str]) -> dict[Key, Row]:
    """Rows by the texts of their keys."""
    return {key_text(row, names): row for row in found}


def key_text(row: Row, names: Sequence[str]) -> Key:
    """A key as texts."""
    return tuple(json.dumps(row[name]) for name in names)


def keyed(names: Sequence[str], key: Key) -> Row:
    """A row of nothing but a key."""
    return dict(zip(names, map(json.loads, key), strict=True))


def _ordered(key: Key | PagingKey) -> list[tuple[bool, Any]]:
    """The values of a key in a form that can be compared; nulls come last."""
    return [(value is None, value) for value in map(json.loads, key)]  # type: ignore[arg-type]
