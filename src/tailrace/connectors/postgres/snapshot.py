"""The snapshot: all captured tables as of one moment, read in parallel, with the log going on from exactly there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import pq, sql

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres import arrow
from tailrace.connectors.postgres.catalog import CapturedTable
from tailrace.connectors.postgres.connect import refused
from tailrace.connectors.postgres.log import ORDER_STEP
from tailrace.connectors.postgres.position import SOURCE_TYPE
from tailrace.connectors.postgres.protocol import copy_text
from tailrace.connectors.postgres.ranges import Range
from tailrace.connectors.postgres.values import converted
from tailrace.events.encode.arrow import indices, repeat
from tailrace.events.faults import Faults
from tailrace.events.notifications import Notice, notify
from tailrace.model.change import BEGAN, READ, ChangeBatch
from tailrace.model.table import TableSchema

_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True)
class Moment:
    """What all rows of one snapshot share: the exported snapshot's name, its LSN, xid (None on a standby) and time."""

    name: str
    lsn: int
    xid: int | None
    ts_us: int


@dataclass(frozen=True)
class SnapshotSplit:
    """Part of a table for one task. `first`, `last`: the markers of its first and last row, if they have one.

    `select`, where one is given, is read instead of the table. `before` and `after` are told around the rows. `began`
    is the position of the snapshot that the table's first rows were read under, if that was an earlier attempt.
    `bytes` is about how large it is, `storage` the table's file where the range is one of keys.
    """

    moment: Moment
    table: CapturedTable
    range: Range
    first: str | None = None
    last: str | None = None
    select: str | None = None
    before: tuple[Notice, ...] = ()
    after: tuple[Notice, ...] = ()
    began: int | None = None
    bytes: int = 0
    storage: int | None = None

    @property
    def query(self) -> sql.Composable:
        """The split's rows, as they stand behind a SELECT list."""
        return sql.SQL(" FROM {}{}").format(source(self.table, self.select), self.range.condition())


def source(table: CapturedTable, select: str | None) -> sql.Composable:
    """What is read for a table: itself, or a SELECT of the user's."""
    if select is not None:
        return sql.SQL("({}) AS overridden").format(sql.SQL(select.rstrip("; ")))
    return sql.Identifier(table.schema.id.schema, table.schema.id.table)


@dataclass(frozen=True)
class EmptySplit:
    """The tables without a row: nothing to read, but a replica may hold rows of an earlier, unfinished snapshot."""

    moment: Moment
    tables: tuple[TableSchema, ...]
    notices: tuple[Notice, ...] = ()


def read(config: Config, split: SnapshotSplit | EmptySplit) -> Iterator[Chunk]:
    """The rows of a split as `r` changes. Raises SourceError, DecodeError."""
    if isinstance(split, EmptySplit):
        none = [(table, pa.nulls(0, table.row_type)) for table in split.tables]
        batches = [ChangeBatch(table, _reads(split.moment, rows, 0), split.moment.lsn) for table, rows in none]
        yield Chunk(batches, controls=notify(config, split.notices))
        return
    if split.before:
        yield Chunk([], controls=notify(config, split.before))
    held: ChangeBatch | None = None
    order, faults = 0, Faults.of(config)
    name = str(split.table.schema.id)
    for found in arrow.batches(config, split.moment.name, _query(split), name):
        batch = _sound(faults, split, found, order)
        if batch is None:
            continue
        order += len(found) * ORDER_STEP
        if held is None:
            batch = _marked(batch, 0, split.first)
        else:
            yield Chunk([held])
        held = batch
    if held is not None:
        # The very first row keeps its marker even as the last of its table, not as the last of all.
        keeps_first = order == ORDER_STEP and split.first == "first" and split.last != "last"
        yield Chunk([held if keeps_first else _marked(held, len(held) - 1, split.last)])
    if split.after:
        yield Chunk([], controls=notify(config, [notice.with_rows(order // ORDER_STEP) for notice in split.after]))


# What a SELECT of the user's gives may have another type than the table's column: its text as COPY would print it.
_ANY_TEXT = "CASE WHEN {0} IS NOT DISTINCT FROM NULL THEN NULL ELSE pg_catalog.format('%s', {0}) END"


def _query(split: SnapshotSplit) -> sql.Composed:
    columns = [
        sql.SQL(_ANY_TEXT if split.select else kind.binary.select if kind.binary else kind.text).format(
            sql.Identifier(column.name)
        )
        for column, kind in zip(split.table.schema.columns, split.table.types, strict=True)
    ]
    return sql.SQL("SELECT {}{}").format(sql.SQL(", ").join(columns), split.query)


def _said(message: bytes | None) -> str:
    return (message or b"").decode(errors="replace").strip().splitlines()[0].removeprefix("ERROR:").strip()


def copy_lines(connection: psycopg.Connection, query: sql.Composed, table: str) -> Iterator[list[bytes | memoryview]]:
    """Lines of a COPY to STDOUT, some megabytes at a time. Raises SourceError, naming the table."""
    pgconn = connection.pgconn
    result = pgconn.exec_(query.as_bytes(connection))
    if result.status != pq.ExecStatus.COPY_OUT:
        raise refused(table, _said(result.error_message))
    lines: list[bytes | memoryview] = []
    size = 0
    while True:
        length, line = pgconn.get_copy_data(0)
        if length <= 0:
            break
        lines.append(line)
        size += length
        if size >= _CHUNK_BYTES:
            yield lines
            lines, size = [], 0
    while (end := pgconn.get_result()) is not None:
        if end.status != pq.ExecStatus.COMMAND_OK:
            raise refused(table, _said(end.error_message))
    if lines:
        yield lines


def _sound(faults: Faults, split: SnapshotSplit, found: pa.RecordBatch, order: int) -> ChangeBatch | None:
    """The rows that can be read; see Faults for the others."""
    return faults.sound(
        len(found),
        lambda places: _batch(split, found if len(places) == len(found) else found.take(indices(places)), order),
        lambda row: f"{split.table.schema.id}, snapshot row {order // ORDER_STEP + row}",
    )


def _batch(split: SnapshotSplit, found: pa.RecordBatch, order: int) -> ChangeBatch:
    schema = split.table.schema
    arrays = [
        converted(values, kind, f"{schema.id}.{column.name}, snapshot", binary=not split.select)
        for values, column, kind in zip(found.columns, schema.columns, split.table.types, strict=True)
    ]
    images = pa.StructArray.from_arrays(arrays, fields=list(schema.row_type))
    rows = _reads(split.moment, images, order)
    if split.began is not None:
        rows = rows.append_column(BEGAN, pa.repeat(pa.scalar(split.began, pa.int64()), len(rows)))
    return ChangeBatch(schema, rows)


def rows_of(table: CapturedTable, lines: list[bytes | memoryview], extra: int) -> tuple[pa.StructArray, list[pa.Array]]:
    """Lines of COPY as row images, and the texts of `extra` more columns that stand behind the table's."""
    schema = table.schema
    buffer, cells = copy_text.cells(lines, len(schema.columns) + extra, str(schema.id))
    texts = [copy_text.unescaped(cell.text(buffer)) for cell in cells]
    arrays = [
        converted(text, kind, f"{schema.id}.{column.name}, snapshot")
        for text, column, kind in zip(texts, schema.columns, table.types, strict=False)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(schema.row_type)), texts[len(arrays) :]


def _reads(moment: Moment, images: pa.StructArray, order: int) -> pa.RecordBatch:
    """Row images as rows of a ChangeBatch, the first of them the `order`th."""
    count = len(images)
    same = [
        pa.scalar(value, field.type)
        for value, field in zip((moment.xid, moment.lsn, *[None] * 4), SOURCE_TYPE, strict=True)
    ]
    columns = {
        "op": repeat(READ, count),
        "order": indices(order + np.arange(count, dtype=np.int64) * ORDER_STEP),
        "ts_us": pa.repeat(pa.scalar(moment.ts_us, pa.int64()), count),
        "snapshot": repeat("true", count),
        "source": pa.StructArray.from_arrays([pa.repeat(value, count) for value in same], fields=list(SOURCE_TYPE)),
        "before": pa.nulls(count, images.type),
        "after": images,
    }
    return pa.RecordBatch.from_pydict(columns)


def _marked(batch: ChangeBatch, row: int, marker: str | None) -> ChangeBatch:
    """The batch with one row's snapshot marker set."""
    if marker is None:
        return batch
    place = batch.rows.schema.get_field_index("snapshot")
    markers = batch.rows.column(place)
    edited = pa.concat_arrays([markers.slice(0, row), pa.array([marker], pa.string()), markers.slice(row + 1)])
    return ChangeBatch(batch.table, batch.rows.set_column(place, "snapshot", edited))
