"""Reads the rows of a snapshot split as `r` changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.config.failure_handling import FailureHandling
from tailrace.config.faults import Fault
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.base import Chunk
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.notifications import Notice, notify
from tailrace.connectors.postgres.catalog.tables import source_of
from tailrace.connectors.postgres.log.decoder import ORDER_STEP
from tailrace.connectors.postgres.position import SOURCE_TYPE
from tailrace.connectors.postgres.server.user_sql import subquery
from tailrace.connectors.postgres.snapshot import transfer
from tailrace.connectors.postgres.snapshot.blocks import RowBlock
from tailrace.connectors.postgres.snapshot.ranges import WHOLE, PrimaryKeyRange, Range
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.connectors.table_split import TableSplit
from tailrace.model.arrow import indices, repeat
from tailrace.model.change import READ, ChangeBatch, SnapshotRead
from tailrace.model.table import TableSchema
from tailrace.override import override

_COLUMNS = ["op", "order", "ts_us", "snapshot", "source", "before", "after"]


@dataclass(frozen=True)
class Moment:
    """What all rows of one snapshot share: the exported snapshot's name, its LSN, xid (None on a standby) and time."""

    name: str
    lsn: int
    xid: int | None
    ts_us: int

    @override
    def __str__(self) -> str:
        # A server gives names again after its restart.
        return f"{self.name} {self.lsn} {self.ts_us}"


@dataclass(frozen=True)
class SnapshotSplit(TableSplit):
    """Implements SnapshotSplit: part of a table for one task.

    `select`, where one is given, is read instead of the table. `storage` is its file where the range is one of keys.
    """

    moment: Moment
    captured: CapturedTable = field(kw_only=True)
    range: Range = WHOLE
    select: str | None = None
    storage: int | None = None

    @property
    @override
    def snapshot(self) -> str:
        """Its position, which no other snapshot of the pipeline has."""
        return self.began or str(self.moment.lsn)

    @property
    def read(self) -> SnapshotRead:
        """What its rows belong to."""
        return self.read_at(self.moment.lsn)

    @property
    @override
    def resume_point(self) -> SnapshotPlace | None:
        if not isinstance(self.range, PrimaryKeyRange) or self.range.above is None:
            return None
        return SnapshotPlace((), self.range.above, self.snapshot, self.storage)

    @property
    def query(self) -> sql.Composable:
        """The split's rows, as they stand behind a SELECT list."""
        return sql.SQL(" FROM {}{}").format(source(self.captured, self.select), self.range.condition())


def source(table: CapturedTable, select: str | None) -> sql.Composable:
    """What is read for a table: itself, or a SELECT of the user's."""
    if select is not None:
        return subquery(select)
    return source_of(table)


@dataclass(frozen=True)
class EmptySplit:
    """The tables without a row: nothing to read, but a replica may hold rows of an earlier, unfinished snapshot."""

    moment: Moment
    tables: tuple[TableSchema, ...]
    notices: tuple[Notice, ...] = ()
    read_id: str = ""
    bytes: int = 0
    resume_point: None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The tables that it reports to be empty."""
        return tuple(str(table.id) for table in self.tables)

    def announced(self, notices: tuple[Notice, ...]) -> EmptySplit:
        """The split with more notices before its first row."""
        return replace(self, notices=(*notices, *self.notices))

    @property
    def read(self) -> SnapshotRead:
        """What the tables' emptiness belongs to."""
        return SnapshotRead(self.read_id, str(self.moment.lsn), self.moment.lsn)


def read(config: Config, split: SnapshotSplit | EmptySplit) -> Iterator[Chunk]:
    """The rows of a split as `r` changes. Raises SourceError, DecodeError."""
    if isinstance(split, EmptySplit):
        none = [(table, pa.nulls(0, table.row_type)) for table in split.tables]
        batches = [ChangeBatch(table, _reads(split.moment, rows, 0), split.read) for table, rows in none]
        yield Chunk(batches, controls=notify(config, split.notices))
        return
    if split.before:
        yield Chunk([], controls=notify(config, split.before))
    rows, failures = 0, FailureHandling.of(config)
    for batch in split.marked(_batches(config, failures, split)):
        rows += len(batch)
        yield Chunk([batch])
    notes = failures.notes(split.captured.schema, split.read)
    if notes:
        yield Chunk(notes)
    if split.after:
        yield Chunk([], controls=notify(config, [notice.with_rows(rows) for notice in split.after]))


def _batches(config: Config, failures: FailureHandling, split: SnapshotSplit) -> Iterator[ChangeBatch]:
    order = 0
    # What a SELECT of the user's gives may have other types than the table: nobody knows its size, so it comes as text.
    for block in transfer.blocks(config, split.moment.name, split.captured, split.query, split.bytes):
        batch = _sound(config, failures, split, block, order)
        if batch is not None:
            yield batch
            order += block.rows * ORDER_STEP


def _sound(
    config: Config, failures: FailureHandling, split: SnapshotSplit, block: RowBlock, order: int
) -> ChangeBatch | None:
    """The rows that can be read; see FailureHandling for the others."""
    return failures.sound(
        block.rows,
        lambda places: _batch(split, _selected(config, split, block.images(places)), order),
        lambda row: f"{split.table}, snapshot row {order // ORDER_STEP + row}",
    )


def _selected(config: Config, split: SnapshotSplit, images: pa.StructArray) -> pa.StructArray:
    """The images. The reference engine does not select key columns that values leave out, so keys have nothing there
    (RelationalSnapshotChangeEventSource.getPreparedColumnNames); it selects all columns if values have none."""
    shown = [column.in_value for column in split.captured.schema.columns]
    if all(shown) or not any(shown) or split.select is not None or Fault.ZERO_HIDDEN_KEYS not in config[COMPAT_FAULTS]:
        return images
    columns = [
        images.field(place) if is_shown else pa.nulls(len(images), images.field(place).type)
        for place, is_shown in enumerate(shown)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(images.type))


def _batch(split: SnapshotSplit, images: pa.StructArray, order: int) -> ChangeBatch:
    return ChangeBatch(split.captured.schema, _reads(split.moment, images, order), split.read)


def _reads(moment: Moment, images: pa.StructArray, order: int) -> pa.RecordBatch:
    """Row images as rows of a ChangeBatch, the first of them the `order`th."""
    count = len(images)
    same = _same(moment, images.type, 1 << max(count - 1, 0).bit_length())
    columns = {
        **{name: same.column(name).slice(0, count) for name in same.schema.names},
        "order": indices(order + np.arange(count, dtype=np.int64) * ORDER_STEP),
        "after": images,
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in _COLUMNS], names=_COLUMNS)


@lru_cache(maxsize=1)
def _same(moment: Moment, row_type: pa.StructType, rows: int) -> pa.RecordBatch:
    """What all rows of a table share, cached from block to block: to create it again costs a tenth of the read."""
    source = [
        pa.repeat(pa.scalar(value, field.type), rows)
        for value, field in zip((moment.xid, moment.lsn, *[None] * 4), SOURCE_TYPE, strict=True)
    ]
    columns = {
        "op": repeat(READ, rows),
        "ts_us": pa.repeat(pa.scalar(moment.ts_us, pa.int64()), rows),
        "snapshot": repeat("true", rows),
        "source": pa.StructArray.from_arrays(source, fields=list(SOURCE_TYPE)),
        "before": pa.nulls(rows, row_type),
    }
    return pa.RecordBatch.from_pydict(columns)
