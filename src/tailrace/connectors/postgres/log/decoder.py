"""Decodes messages of the log to change batches, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.failure_handling import FailureHandling
from tailrace.connectors.base import Chunk
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.ddl.event_triggers import CONTENT
from tailrace.connectors.postgres.ddl.schema_changes import SchemaChangeReader
from tailrace.connectors.postgres.log.computed import Computed
from tailrace.connectors.postgres.log.images import Images
from tailrace.connectors.postgres.log.messages import LogicalMessages, apart
from tailrace.connectors.postgres.log.protocol import pgoutput
from tailrace.connectors.postgres.log.protocol.framing import Bytes, Frames, Ints, Packed, frame
from tailrace.connectors.postgres.log.protocol.pgoutput import Messages, Relation, Relations, Rows, Structure
from tailrace.connectors.postgres.position import SOURCE_TYPE, format_lsn
from tailrace.connectors.reselect import Reselector
from tailrace.errors import DecodeError
from tailrace.model.arrow import indices, join, repeat
from tailrace.model.change import COMMIT, CREATE, DELETE, MESSAGE, SCHEMA, TRUNCATE, UPDATE, ChangeBatch, note
from tailrace.model.marks import MARKS
from tailrace.model.table import TableSchema

# Orders of neighbouring changes differ by two: a key change becomes two events.
ORDER_STEP = 2
_OPS = {pgoutput.INSERT: CREATE, pgoutput.UPDATE: UPDATE, pgoutput.DELETE: DELETE}


@dataclass(slots=True)
class Transaction:
    """The transaction that a chunk's first messages belong to."""

    xid: int = 0
    commit_us: int = 0
    commit_lsn: int = 0
    origin: tuple[int, str] | None = None


@dataclass
class LogDecoder:
    """Decodes one read of the log. What spans chunks (open transaction, relations, order) is kept here.

    `describe` gives a relation's table, None when it is not captured; `prepare` first gets the relations that a chunk
    announces, so that they can be looked up together. `last_commit` is the end of the transaction
    before this read, None when there was none. Without `messages` logical messages are left out, without
    `schema_changes` what the DDL triggers report; with `reselector` values that the log did not repeat are looked up in
    the table, and `computed` gives columns that it does not have at all. `xmin` is what `source.xmin` says. Without
    `has_marks` chunks do not have the marks of transactions.
    """

    describe: Callable[[Relation], CapturedTable | None]
    last_commit: int | None
    tables: dict[int, CapturedTable | None] = field(default_factory=dict)
    relations: Relations = field(default_factory=Relations)
    _: KW_ONLY
    transaction: Transaction = field(default_factory=Transaction)
    order: int = 0
    messages: LogicalMessages | None = None
    schema_changes: SchemaChangeReader | None = None
    reselector: Reselector | None = None
    xmin: int | None = None
    has_marks: bool = True
    failures: FailureHandling = field(default_factory=FailureHandling)
    prepare: Callable[[Sequence[Relation]], None] | None = None
    computed: Computed | None = None
    _announced: dict[int, Relation] = field(default_factory=dict)

    def decode(self, messages: Packed) -> Chunk:
        """The changes of some consecutive messages. Raises DecodeError."""
        frames = frame(messages)
        pgoutput.check_kinds(frames)
        self._announced = {
            at: pgoutput.relation(frames.payload(at)) for at in pgoutput.positions(frames, pgoutput.RELATION).tolist()
        }
        if self.prepare is not None and self._announced:
            self.prepare([*self._announced.values()])
        context = _Context.of(frames, self)
        batches: list[ChangeBatch] = []
        logical = pgoutput.messages(frames) if (frames.kind == pgoutput.MESSAGE).any() else None
        reports = self._reports(frames)
        again = self._announce()
        cuts = np.union1d(pgoutput.positions(frames, pgoutput.TRUNCATE), [*again, *reports]).astype(np.intp)
        begin = 0
        for cut in [*cuts.tolist(), len(frames)]:
            batches.extend(self._rows(frames, slice(begin, cut), context))
            if cut in reports:
                batches.extend(self._schema_changes(frames, cut, context))
            elif cut < len(frames):
                batches.extend(self._special(frames, cut, context))
            begin = cut + 1
        if self.messages is not None and logical is not None:
            batches.extend(_messages(logical, self.messages, context))
        if self.computed is not None:
            batches += self.computed.notes
            self.computed.notes = []
        self._carry(context, len(frames))
        return Chunk(batches, context.marks(frames)) if self.has_marks else Chunk(batches)

    def _announce(self) -> list[int]:
        """Remember the relations that are new, and return where others are described again.

        No row of a new relation precedes its description, so the rows of many tables can be taken together.
        """
        again = []
        for at, relation in self._announced.items():
            if relation.oid in self.relations.by_oid:
                again.append(at)
            else:
                self._remember(relation)
        return again

    def _remember(self, relation: Relation) -> None:
        self.relations.by_oid[relation.oid] = relation
        self.tables.pop(relation.oid, None)
        if self.computed is not None:
            self.computed.forget(relation.oid)

    def _rows(self, frames: Frames, span: slice, context: _Context) -> Iterator[ChangeBatch]:
        for rows in pgoutput.rows(frames, self._structure, span):
            yield from self._together(frames, rows, context)

    def _structure(self, oid: int) -> Structure | None:
        """A captured relation. Rows of tables that share their types are read together; see Structures."""
        relation = self.relations.of(oid)
        table = self._table(relation)
        if table is None:
            return None
        return relation, oid if self.reselector is not None or table.absent else id(table.types)

    def _together(self, frames: Frames, rows: Rows, context: _Context) -> Iterator[ChangeBatch]:
        """A batch for each relation. Columns are converted once for all of them, as most of the cost is by call."""
        tables = [table for table in map(self._table, rows.relations) if table is not None]
        if len(tables) == 1:
            batch = self._sound(frames, rows, tables[0], context)
            if batch is not None:
                yield batch
            yield from self.failures.notes(tables[0].schema)
            return
        try:
            whole = self._batch(frames, rows, tables[0], context)
        except DecodeError:
            # One after the other, so that the error names its table, or the row is left out.
            for each in rows.apart():
                yield from self._together(frames, each, context)
            return
        ends = np.cumsum(rows.counts).tolist()
        for table, count, end in zip(tables, rows.counts, ends, strict=True):
            yield replace(whole.slice(end - count, count), table=table.schema)

    def _sound(self, frames: Frames, rows: Rows, table: CapturedTable, context: _Context) -> ChangeBatch | None:
        """The rows that can be read; see FailureHandling for the others."""
        return self.failures.sound(
            len(rows.index),
            lambda places: self._batch(frames, rows.take(places), table, context),
            lambda row: f"{table.schema.id} at {format_lsn(int(context.lsn[rows.index[row]]))}",
        )

    def _batch(self, frames: Frames, rows: Rows, table: CapturedTable, context: _Context) -> ChangeBatch:
        """Rows of relations with the columns and types of a table as a ChangeBatch of that table."""
        count = len(rows.index)
        times, xids = context.transactions(rows.index)
        places = {column.name: place for place, column in enumerate(rows.columns)}
        chosen = [places.get(column.name) for column in table.schema.columns]
        images = Images(frames, rows, table, chosen, int(context.lsn[rows.index[0]]), self.computed)
        before, old = images.struct(rows.old, rows.has_old)
        after, _ = images.struct(rows.new, rows.has_new, old)
        unchanged = images.unchanged()
        if self.reselector is not None and len(rows.relations) == 1:
            keys = [rows.new[places[name]].text(frames.buffer) for name in self.reselector.key(table)]
            after, unchanged = self.reselector.fill(table, keys, after, unchanged)
        columns = {
            "op": _ops(rows.kind),
            "order": indices(context.orders(rows.index)),
            "ts_us": indices(times),
            "snapshot": pa.nulls(count, pa.string()),
            "source": context.source(rows.index, xids),
            "before": before,
            "after": after,
            COMMIT: context.commit_lsns(rows.index),
        }
        shown = _with_placeholder(table, unchanged)
        if shown is not None:
            columns["unchanged"] = shown
        return ChangeBatch(table.schema, pa.RecordBatch.from_pydict(columns))

    def _table(self, relation: Relation) -> CapturedTable | None:
        if relation.oid not in self.tables:
            self.tables[relation.oid] = self.describe(relation)
        return self.tables[relation.oid]

    def _special(self, frames: Frames, at: int, context: _Context) -> Iterator[ChangeBatch]:
        """A Relation message is remembered, a Truncate becomes one event a table."""
        if frames.kind[at] == pgoutput.RELATION:
            self._remember(self._announced[at])
            return
        for oid in pgoutput.truncated(frames.payload(at)):
            table = self._table(self.relations.of(oid))
            if table is not None:
                yield _without_images(TRUNCATE, table.schema, context, np.array([at]))

    def _reports(self, frames: Frames) -> set[int]:
        """Where the DDL triggers have written a row into their table."""
        if self.schema_changes is None:
            return set()
        relations = (*self.relations.by_oid.values(), *self._announced.values())
        tables = {relation.oid for relation in relations if self.schema_changes.is_source(relation)}
        if not tables:
            return set()
        places, into = pgoutput.inserts(frames)
        theirs = [table for table in tables if (into == table).any() and self.schema_changes.trusts(table)]
        return set(places[np.isin(into, theirs)].tolist())

    def _schema_changes(self, frames: Frames, at: int, context: _Context) -> Iterator[ChangeBatch]:
        """A row of the DDL triggers becomes one event a table, between the rows before and after it."""
        assert self.schema_changes is not None
        (row,) = pgoutput.rows(frames, lambda oid: (self.relations.of(oid), oid), slice(at, at + 1))
        cells = {column.name: each for column, each in zip(row.columns, row.new, strict=True)}
        content = cells[CONTENT].text(frames.buffer)[0].as_py() if CONTENT in cells else None
        for table, change, lacking in self.schema_changes.read(content, int(context.lsn[at])):
            schema = TableSchema(table, (), (), ())
            batch = _without_images(SCHEMA, schema, context, np.array([at]))
            yield replace(batch, schema_change=change)
            if lacking is not None:
                yield note(schema, lacking=lacking)

    def _carry(self, context: _Context, count: int) -> None:
        self.order = context.order + count * ORDER_STEP
        begins = context.begins
        if len(begins.index):
            xid, commit_us, commit_lsn = (int(each[-1]) for each in (begins.xid, begins.commit_us, begins.final_lsn))
            self.transaction = Transaction(xid, commit_us, commit_lsn)
        self.transaction.origin = context.last_origin()
        if len(context.commits.index):
            self.last_commit = int(context.commits.end_lsn[-1])


@dataclass(frozen=True, slots=True)
class _Context:
    """What the messages of a chunk say about its rows: their transaction, its time, the transaction before.

    `carried` is the transaction of the rows before the first BEGIN, `last_commit` the end of the one before it, None if
    there was none. `order` is that of the first message, `lsn` the position of each message (by message), `origins` the
    places of the messages that name an origin. In what follows `index` are places of messages.
    """

    begins: pgoutput.Begins
    commits: pgoutput.Commits
    carried: Transaction
    last_commit: int | None
    _: KW_ONLY
    order: int
    xmin: int | None
    lsn: Ints
    origins: npt.NDArray[np.intp]
    frames: Frames

    @staticmethod
    def of(frames: Frames, decoder: LogDecoder) -> _Context:
        """The context of a chunk, with what the decoder has of the chunks before it."""
        return _Context(
            pgoutput.begins(frames),
            pgoutput.commits(frames),
            decoder.transaction,
            decoder.last_commit,
            order=decoder.order,
            xmin=decoder.xmin,
            lsn=frames.lsn,
            origins=pgoutput.positions(frames, pgoutput.ORIGIN),
            frames=frames,
        )

    def orders(self, index: npt.NDArray[np.intp]) -> Ints:
        """The order of each message."""
        return self.order + index.astype(np.int64) * ORDER_STEP

    def transactions(self, index: npt.NDArray[np.intp]) -> tuple[Ints, Ints]:
        """Commit time (microseconds) and xid of the transaction each message belongs to."""
        which = np.searchsorted(self.begins.index, index, side="right")
        times = np.concatenate([[self.carried.commit_us], self.begins.commit_us])
        xids = np.concatenate([[self.carried.xid], self.begins.xid])
        return times[which], xids[which]

    def commit_lsns(self, index: npt.NDArray[np.intp]) -> pa.Array:
        """The commit record of the transaction that each message belongs to: ranges of the log are cut by them."""
        which = np.searchsorted(self.begins.index, index, side="right")
        return indices(np.concatenate([[self.carried.commit_lsn], self.begins.final_lsn])[which])

    def source(self, index: npt.NDArray[np.intp], xids: Ints) -> pa.StructArray:
        """The column `source` of the messages' rows; `xids` are those of `transactions`."""
        which = np.searchsorted(self.commits.index, index, side="right")
        ends = np.concatenate([[self.last_commit or 0], self.commits.end_lsn])
        unknown = (which == 0) & (self.last_commit is None)
        nothing = pa.nulls(len(index), pa.int64())
        origin, origin_lsn = nothing.cast(pa.string()), nothing
        if len(self.origins) or self.carried.origin:
            origin, origin_lsn = self._origins(index)
        last_commit = indices(ends[which], unknown if unknown.any() else None)
        xmin = nothing if self.xmin is None else pa.repeat(pa.scalar(self.xmin, pa.int64()), len(index))
        arrays = [indices(xids), indices(self.lsn[index]), xmin, origin, origin_lsn, last_commit]
        return pa.StructArray.from_arrays(arrays, fields=list(SOURCE_TYPE))

    def _origins(self, index: npt.NDArray[np.intp]) -> tuple[pa.Array, pa.Array]:
        """Origin of each message: the last Origin message, if it stands in the same transaction."""
        parsed = [self.carried.origin, *map(self._origin, self.origins)]
        # The carried one stands before the chunk's first message.
        places = np.concatenate([[-1], self.origins])
        which = np.searchsorted(places, index, side="right") - 1
        begun = np.searchsorted(self.begins.index, index, side="right")
        its_own = np.searchsorted(self.begins.index, places[which], side="right") == begun
        picks = pa.array(which, mask=~its_own)
        names = pa.array([each and each[1] for each in parsed], pa.string())
        return names.take(picks), pa.array([each and each[0] for each in parsed], pa.int64()).take(picks)

    def _origin(self, at: np.intp) -> tuple[int, str]:
        return pgoutput.origin(self.frames.payload(int(at)))

    def last_origin(self) -> tuple[int, str] | None:
        """The origin of the transaction that is open, or was the last, at the chunk's end."""
        begun = int(self.begins.index[-1]) if len(self.begins.index) else -1
        if len(self.origins) and self.origins[-1] > begun:
            return self._origin(self.origins[-1])
        return self.carried.origin if begun < 0 else None

    def marks(self, frames: Frames) -> pa.RecordBatch:
        """Where transactions begin and end, see connectors/base.py."""
        index = np.concatenate([self.begins.index, self.commits.index])
        by_order = np.argsort(index, kind="stable")
        index = index[by_order]
        times, xids = self.transactions(index)
        status = np.repeat(["BEGIN", "END"], [len(self.begins.index), len(self.commits.index)])[by_order]
        # BEGIN carries the LSN of its message, END the position behind the transaction.
        lsns = np.concatenate([self.lsn[self.begins.index], self.commits.end_lsn])[by_order]
        ids = join(pc.cast(indices(xids), pa.string()), ":", pc.cast(indices(lsns), pa.string()))
        columns = [indices(self.orders(index)), pa.array(status.tolist(), pa.string()), ids, indices(times)]
        return pa.RecordBatch.from_arrays(columns, schema=MARKS)


def _with_placeholder(table: CapturedTable, unchanged: pa.StructArray | None) -> pa.StructArray | None:
    """`unchanged` without the columns that are null where the log did not repeat a value."""
    kinds = {column.name: kind for column, kind in zip(table.schema.columns, table.types, strict=True)}
    if unchanged is None or all(kinds[flags.name].placeholder for flags in unchanged.type):
        return unchanged
    names = [flags.name for flags in unchanged.type if kinds[flags.name].placeholder]
    return pa.StructArray.from_arrays([unchanged.field(name) for name in names], names=names) if names else None


def _ops(kind: Bytes) -> pa.Array:
    names = pa.array([CREATE, UPDATE, DELETE], pa.string())
    codes = np.zeros(len(kind), np.int8)
    codes[kind == pgoutput.UPDATE] = 1
    codes[kind == pgoutput.DELETE] = 2
    return names.take(pa.array(codes, pa.int8()))


def _messages(logical: Messages, wanted: LogicalMessages, context: _Context) -> Iterator[ChangeBatch]:
    """The logical messages as changes of their table without a name."""
    logical = wanted.captured(logical)
    if not len(logical.index):
        return
    times, xids = context.transactions(logical.index)
    times, source = apart(logical, times, context.source(logical.index, xids))
    count = len(logical.index)
    columns = {
        "op": repeat(MESSAGE, count),
        "order": indices(context.orders(logical.index)),
        "ts_us": indices(times),
        "snapshot": pa.nulls(count, pa.string()),
        "source": source,
        "before": pa.nulls(count, wanted.table.row_type),
        "after": wanted.images(logical),
    }
    yield ChangeBatch(wanted.table, pa.RecordBatch.from_pydict(columns))


def _without_images(op: str, table: TableSchema, context: _Context, index: npt.NDArray[np.intp]) -> ChangeBatch:
    times, xids = context.transactions(index)
    nothing = pa.nulls(1, table.row_type)
    columns = {
        "op": repeat(op, 1),
        "order": indices(context.orders(index)),
        "ts_us": indices(times),
        "snapshot": pa.nulls(1, pa.string()),
        "source": context.source(index, xids),
        "before": nothing,
        "after": nothing,
        COMMIT: context.commit_lsns(index),
    }
    return ChangeBatch(table, pa.RecordBatch.from_pydict(columns))
