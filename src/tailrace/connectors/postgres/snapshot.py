"""The snapshot: all captured tables as of one moment, read in parallel, with the log going on from exactly there."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import pq, sql

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.catalog import CapturedTable, Catalog
from tailrace.connectors.postgres.connect import connect
from tailrace.connectors.postgres.export import Export, adopt
from tailrace.connectors.postgres.log import ORDER_STEP
from tailrace.connectors.postgres.position import SOURCE_TYPE
from tailrace.connectors.postgres.protocol import copy_text
from tailrace.connectors.postgres.snapshot_tables import Selects, in_order, is_read, overrides
from tailrace.connectors.postgres.values import converted
from tailrace.errors import SourceError
from tailrace.events.encode.arrow import indices, repeat
from tailrace.events.faults import Faults
from tailrace.events.notifications import Notice, is_wanted, notify
from tailrace.model.change import READ, ChangeBatch
from tailrace.model.table import TableSchema
from tailrace.snapshot.notices import around_splits

log = logging.getLogger(__name__)

# A split reads about this much of a table's file; a task's start costs far less than reading it.
SPLIT_BYTES = 64 << 20
_BLOCK_BYTES = 8192
_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True)
class Moment:
    """What all rows of one snapshot share: the exported snapshot's name, its LSN, xid (None on a standby) and time."""

    name: str
    lsn: int
    xid: int | None
    ts_us: int


@dataclass(frozen=True)
class Blocks:
    """A range of a table's blocks, [first, last); None is open. A table without ctid ranges is one open range."""

    first: int | None = None
    last: int | None = None

    def condition(self) -> sql.Composable:
        """The range as a WHERE clause, empty when it is open on both sides."""
        bounds = [
            sql.SQL(f"ctid {sign} {{}}::tid").format(sql.Literal(f"({block},0)"))
            for sign, block in ((">=", self.first), ("<", self.last))
            if block is not None
        ]
        return sql.SQL(" WHERE ") + sql.SQL(" AND ").join(bounds) if bounds else sql.SQL("")


@dataclass(frozen=True)
class SnapshotSplit:
    """Part of a table for one task. `first`, `last`: the markers of its first and last row, if they have one.

    `select`, where one is given, is read instead of the table. `before` and `after` are told around the rows.
    """

    moment: Moment
    table: CapturedTable
    blocks: Blocks
    first: str | None = None
    last: str | None = None
    select: str | None = None
    before: tuple[Notice, ...] = ()
    after: tuple[Notice, ...] = ()

    @property
    def rows(self) -> sql.Composable:
        """What stands in a FROM clause."""
        return _rows(self.table, self.select)


@dataclass(frozen=True)
class EmptySplit:
    """The tables without a row: nothing to read, but a replica may hold rows of an earlier, unfinished snapshot."""

    moment: Moment
    tables: tuple[TableSchema, ...]
    notices: tuple[Notice, ...] = ()


def plan(
    config: Config, export: Export, wanted: Mapping[str, str | None] | None = None
) -> list[SnapshotSplit | EmptySplit]:
    """Splits under an exported snapshot, in snapshot order, markers included.

    Of all captured tables, or of those in `wanted`, which may give a SELECT to read instead.
    """
    with connect(config, application="tailrace planner") as connection:
        row = connection.execute(
            "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_xact_id()::text::int8 END, "
            "(extract(epoch FROM clock_timestamp()) * 1000000)::int8"
        ).fetchone()
        assert row is not None
        moment = Moment(export.name, export.lsn, row[0], row[1])
        catalog = Catalog(connection, config)
        if wanted is not None:
            export.lock(config, [table for table in catalog.tables() if str(table) in wanted])
        adopt(connection, export.name)
        splits: list[SnapshotSplit] = []
        empty: list[TableSchema] = []
        selects, given = Selects(config), overrides(config) if wanted is None else wanted
        for place, table in enumerate(
            table
            for table in in_order(connection, config, catalog.tables())
            if (str(table) in wanted if wanted is not None else is_read(config, catalog, table))
        ):
            captured = catalog.table(table)
            if captured is None:
                continue
            is_wanted_at_all, select = selects.of(captured, given.get(str(table)))
            if not is_wanted_at_all:
                continue
            found = _table_splits(connection, moment, captured, place == 0, select)
            splits.extend(found)
            if not found:
                empty.append(captured.schema)
        marked = _mark_last(splits)
        if wanted is None and is_wanted(config):
            # Tasks only know how many rows they read themselves: those of a table that several read are counted here.
            several = {split.table.schema.id: split for split in marked if split.blocks != Blocks()}
            counts = {str(table): _count(connection, split) for table, split in several.items()}
            names = [str(split.table.schema.id) for split in marked]
            listed = [str(table) for table in catalog.tables()]
            around, notices = around_splits(names, listed, [str(schema.id) for schema in empty], counts)
            marked = [replace(split, before=one[0], after=one[1]) for split, one in zip(marked, around, strict=True)]
            return [*marked, *([EmptySplit(moment, tuple(empty), notices)] if empty or notices else [])]
        return [*marked, *([EmptySplit(moment, tuple(empty))] if empty else [])]


def _count(connection: psycopg.Connection, split: SnapshotSplit) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(split.rows)).fetchone()
    assert row is not None
    return int(row[0])


def _table_splits(
    connection: psycopg.Connection, moment: Moment, table: CapturedTable, is_first: bool, select: str | None
) -> list[SnapshotSplit]:
    """The splits of one table that hold rows at their edges: empty ones at either end are left out."""
    ranges = [Blocks()] if select else _ranges(connection, table)
    while ranges and _empty(connection, _rows(table, select), ranges[0]):
        ranges.pop(0)
    while ranges and _empty(connection, _rows(table, select), ranges[-1]):
        ranges.pop()
    splits = [SnapshotSplit(moment, table, blocks, select=select) for blocks in ranges]
    if splits:
        first = "first" if is_first else "first_in_data_collection"
        splits[0] = replace(splits[0], first=first)
        splits[-1] = replace(splits[-1], last="last_in_data_collection")
    return splits


def _mark_last(splits: list[SnapshotSplit]) -> list[SnapshotSplit]:
    if splits:
        splits[-1] = replace(splits[-1], last="last")
    return splits


def _ranges(connection: psycopg.Connection, table: CapturedTable) -> list[Blocks]:
    """Block ranges of about SPLIT_BYTES. The last one is open, for children of the table are read along with it."""
    row = connection.execute(
        "SELECT relkind = 'r' AND NOT relhassubclass, pg_relation_size(oid) / %s FROM pg_class "
        "WHERE oid = %s::regclass",
        [_BLOCK_BYTES, _name(table).as_string(connection)],
    ).fetchone()
    assert row is not None
    plain, blocks = row
    step = SPLIT_BYTES // _BLOCK_BYTES
    edges = list(range(step, blocks, step)) if plain else []
    return [Blocks(first, last) for first, last in zip([None, *edges], [*edges, None], strict=True)]


def _rows(table: CapturedTable, select: str | None) -> sql.Composable:
    return _name(table) if select is None else sql.SQL("({}) AS overridden").format(sql.SQL(select.rstrip("; ")))


def _empty(connection: psycopg.Connection, rows: sql.Composable, blocks: Blocks) -> bool:
    query = sql.SQL("SELECT 1 FROM {}{} LIMIT 1").format(rows, blocks.condition())
    return connection.execute(query).fetchone() is None


def _name(table: CapturedTable) -> sql.Identifier:
    return sql.Identifier(table.schema.id.schema, table.schema.id.table)


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
            order += len(lines) * ORDER_STEP
            if batch is None:
                continue
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
    query = sql.SQL("COPY (SELECT {} FROM {}{}) TO STDOUT").format(columns, split.rows, split.blocks.condition())
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
    while (end := pgconn.get_result()) is not None:
        if end.status != pq.ExecStatus.COMMAND_OK:
            raise _copy_error(table, end.error_message or b"")
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
    return ChangeBatch(split.table.schema, _reads(split.moment, images, order))


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
