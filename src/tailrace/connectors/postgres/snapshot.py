"""The snapshot: all captured tables as of one moment, read in parallel, with the log going on from exactly there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import pq, sql

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.catalog import CapturedTable
from tailrace.connectors.postgres.connect import connect
from tailrace.connectors.postgres.export import adopt
from tailrace.connectors.postgres.log import ORDER_STEP
from tailrace.connectors.postgres.position import SOURCE_TYPE
from tailrace.connectors.postgres.protocol import copy_text
from tailrace.connectors.postgres.ranges import Range
from tailrace.connectors.postgres.values import converted
from tailrace.errors import SourceError
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
    with closing(connect(config, application="tailrace snapshot reader")) as connection:
        connection.execute("SET statement_timeout = 0")
        adopt(connection, split.moment.name)
        held: ChangeBatch | None = None
        order, faults = 0, Faults.of(config)
        for lines in _lines(connection, split):
            batch = _sound(faults, split, lines, order)
            if batch is None:
                continue
            order += len(lines) * ORDER_STEP
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


def _lines(connection: psycopg.Connection, split: SnapshotSplit) -> Iterator[list[bytes | memoryview]]:
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in split.table.schema.columns)
    query = sql.SQL("COPY (SELECT {}{}) TO STDOUT").format(columns, split.query)
    return copy_lines(connection, query, str(split.table.schema.id))


def copy_lines(connection: psycopg.Connection, query: sql.Composed, table: str) -> Iterator[list[bytes | memoryview]]:
    """Lines of a COPY to STDOUT, some megabytes at a time. Raises SourceError, naming the table."""
    pgconn = connection.pgconn
    result = pgconn.exec_(query.as_bytes(connection))
    if result.status != pq.ExecStatus.COPY_OUT:
        raise _copy_error(table, result.error_message or b"")
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
    refused: bytes | None = None
    # To the end, or the connection could not even roll back.
    while (end := pgconn.get_result()) is not None:
        if end.status != pq.ExecStatus.COMMAND_OK:
            refused = end.error_message or b""
    if refused is not None:
        raise _copy_error(table, refused)
    if lines:
        yield lines


def _copy_error(table: str, message: bytes) -> SourceError:
    said = message.decode(errors="replace").strip().splitlines()[0].removeprefix("ERROR:").strip()
    remedy = f"GRANT SELECT ON {table} TO database.user" if "permission" in said else "start the query again"
    return SourceError(f"the snapshot cannot read the table: {said}", where=table, remedy=remedy)


def _sound(faults: Faults, split: SnapshotSplit, lines: list[bytes | memoryview], order: int) -> ChangeBatch | None:
    """The lines that can be read; see Faults for the others."""
    return faults.sound(
        len(lines),
        lambda places: _batch(split, lines if len(places) == len(lines) else [lines[at] for at in places], order),
        lambda row: f"{split.table.schema.id}, snapshot row {order // ORDER_STEP + row}",
    )


def _batch(split: SnapshotSplit, lines: list[bytes | memoryview], order: int) -> ChangeBatch:
    images, _ = rows_of(split.table, lines, 0)
    rows = _reads(split.moment, images, order)
    if split.began is not None:
        rows = rows.append_column(BEGAN, pa.repeat(pa.scalar(split.began, pa.int64()), len(rows)))
    return ChangeBatch(split.table.schema, rows)


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
