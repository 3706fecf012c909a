"""Converts the events of a log range to change batches, one collection each."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.connectors.base import Chunk
from tailrace.connectors.mongodb import record_format
from tailrace.connectors.mongodb.catalog import table_id
from tailrace.connectors.mongodb.config import is_for_replica
from tailrace.connectors.mongodb.documents import Documents, chosen
from tailrace.connectors.mongodb.fields import CollectionFields
from tailrace.connectors.mongodb.log.events import NO_TIME, ChangeEvents
from tailrace.connectors.mongodb.log.lookup import DocumentLookup, lacks_document
from tailrace.connectors.mongodb.log.oplog import Oplog
from tailrace.connectors.mongodb.log.pipeline import captured
from tailrace.connectors.mongodb.log.stream import ChangeStream
from tailrace.connectors.mongodb.log.structure import structural, structure_batches
from tailrace.connectors.mongodb.options import CAPTURE_MODE, OPLOG
from tailrace.connectors.mongodb.position import DESCRIPTION_TYPE, SOURCE_TYPE
from tailrace.connectors.mongodb.types.layout import Ints, Values
from tailrace.model.arrow import indices, literal, mask, repeat
from tailrace.model.change import COMMIT, CREATE, DELETE, UPDATE, UPDATE_DESCRIPTION, ChangeBatch, note
from tailrace.model.marks import BEGIN, END, MARKS
from tailrace.model.table import TableSchema

# Between two events there is room for the mark that ends a transaction and the one that begins the next.
ORDER_STEP = 4
_CODES = {"insert": CREATE, "update": UPDATE, "replace": UPDATE, "delete": DELETE}


@dataclass(frozen=True)
class LogRange:
    """The log from `start` to `end`, both of them positions."""

    start: str
    end: str


# The stream that the last range of a process was read from: the next one mostly continues from there.
_open: dict[tuple[Any, ...], ChangeStream | Oplog] = {}


@atexit.register
def close_streams() -> None:
    """Close all streams that are open."""
    while _open:
        _open.popitem()[1].close()


def changes(config: Config, wanted: LogRange) -> Iterator[Chunk]:
    """The changes of a range, as Connector.changes has them."""
    key = (*sorted(config.given.items()), config.tables)
    stream = _open.pop(key, None)
    if stream is None or stream.position != wanted.start:
        if stream is not None:
            stream.close()
        stream = (Oplog if config[CAPTURE_MODE] == OPLOG else ChangeStream)(config, wanted.start)
    lookup = DocumentLookup(config, stream.client) if is_for_replica(config) else None
    writer = Writer(config, None if record_format.is_current(config) else stream.set_name(), lookup)
    try:
        for events in stream.read(wanted.end):
            for some in (events,) if lookup is None else pieces(events, lookup):
                yield writer.chunk(some)
        yield writer.end()
        _open[key] = stream
    finally:
        if _open.get(key) is not stream:
            stream.close()


class Writer:
    """Makes change batches of events, in the order of the log.

    `set_name` is the replica set's name. With a `lookup` they are for a sink that keeps the content of collections.
    """

    def __init__(self, config: Config, set_name: str | None = None, lookup: DocumentLookup | None = None) -> None:
        self._lookup = lookup
        self._set_name = None if record_format.is_current(config) else set_name
        self._is_current, self._is_debezium_1 = record_format.is_current(config), record_format.is_debezium_1(config)
        self._captures = captured(config)
        self._documents = Documents(config)
        self._order = ORDER_STEP
        self._has_marks = config[PROVIDE_TRANSACTION_METADATA]
        self._transaction: tuple[str, int] | None = None

    def chunk(self, events: ChangeEvents) -> Chunk:
        """The changes of some events, with the marks of transactions."""
        if self._lookup is not None and structural(events).any():
            self._order += ORDER_STEP
            return Chunk(structure_batches(events, self._order - ORDER_STEP, self._captures))
        events = _of_documents(events)
        order = self._order + ORDER_STEP * np.arange(len(events), dtype=np.int64)
        self._order += ORDER_STEP * len(events)
        numbers, names = events.namespaces
        batches, kept = [], np.zeros(len(events), np.bool_)
        for place, (database, collection) in enumerate(names):
            table = table_id(database or "", collection or "")
            if self._captures(table):
                rows = np.flatnonzero(numbers == place)
                kept[rows] = True
                batches += self._batches(events, rows, order, self._documents.schema(table))
        return Chunk(batches, marks=self._marks(events, order, kept))

    def end(self) -> Chunk:
        """The mark that ends the last transaction: a range never ends within one."""
        marks = [] if self._transaction is None else [_mark(self._order, END, *self._transaction)]
        self._transaction = None
        return Chunk([], marks=pa.RecordBatch.from_pylist(marks, schema=MARKS))

    def _batches(self, events: ChangeEvents, rows: Ints, order: Ints, schema: TableSchema) -> list[ChangeBatch]:
        taken = events if len(rows) == len(events) else ChangeEvents(events.documents.take(rows))
        ops = pa.array(list(_CODES.values())).take(pc.index_in(taken.operations, pa.array(list(_CODES))))
        if self._lookup is not None:
            return self._rows(taken, ops, order[rows], schema, self._lookup)
        keys = taken.key_text(self._documents.key)
        before, after = taken.before, taken.after
        if self._is_debezium_1:
            after = chosen(after, pc.equal(ops, CREATE).to_numpy(zero_copy_only=False))
        old_keys = pc.if_else(pc.or_(pc.equal(ops, DELETE), mask(before.present)), keys, literal(None))
        images = self._images(schema, ops, before, after, old_keys, keys)
        return [self._batch(taken, ops, order[rows], schema, images)]

    def _rows(
        self, events: ChangeEvents, ops: pa.Array, order: Ints, schema: TableSchema, lookup: DocumentLookup
    ) -> list[ChangeBatch]:
        """Changes for a sink that keeps rows: each has its document, and the key of that."""
        whole = lookup.completed(schema.id, events)
        ops = pc.if_else(mask(whole.gone), DELETE, ops)
        keys = events.key_text(self._documents.key)
        new_keys = self._documents.keys_now(whole.after, events.keys, keys)
        is_moved = pc.and_(pc.equal(ops, UPDATE), pc.not_equal(keys, new_keys))
        has_old = pc.or_(pc.or_(pc.equal(ops, DELETE), mask(events.before.present)), is_moved)
        old_keys = pc.if_else(has_old, keys, literal(None))
        images = self._images(schema, ops, events.before, whole.after, old_keys, new_keys)
        if whole.kept.any():
            images["unchanged"] = self._documents.unchanged(schema, whole.kept)
        batches = [self._batch(events, ops, order, schema, images)]
        return batches if whole.lacking is None else [*batches, note(schema, lacking=whole.lacking)]

    def _images(
        self, schema: TableSchema, ops: pa.Array, before: Values, after: Values, old_keys: pa.Array, new_keys: pa.Array
    ) -> dict[str, pa.Array]:
        """The documents before and after changes, under these keys; a deletion has none after it."""
        new_keys = pc.if_else(pc.equal(ops, DELETE), literal(None), new_keys)
        return {
            "before": self._documents.images(schema, before, old_keys),
            "after": self._documents.images(schema, after, new_keys),
        }

    def _batch(
        self, events: ChangeEvents, ops: pa.Array, order: Ints, schema: TableSchema, images: dict[str, pa.Array]
    ) -> ChangeBatch:
        columns = {
            "op": ops,
            "order": pa.array(order),
            "ts_us": _times(events, is_coarse=not self._is_current),
            "snapshot": pa.nulls(len(events), pa.string()),
            "source": _source(events, self._set_name),
            **images,
            COMMIT: events.token_texts,
        }
        if self._lookup is None:
            columns |= self._described(events, schema, ops)
        return ChangeBatch(schema, pa.RecordBatch.from_pydict(columns))

    def _described(self, events: ChangeEvents, schema: TableSchema, ops: pa.Array) -> dict[str, pa.Array]:
        """The members of the envelope that tell what an update changed."""
        if not self._is_debezium_1:
            return {UPDATE_DESCRIPTION: self._descriptions(events, schema)}
        filters = pc.if_else(pc.equal(ops, CREATE), pa.scalar(None, pa.string()), record_format.filters(events))
        return {record_format.PATCH: record_format.patches(events), record_format.FILTER: filters}

    def _descriptions(self, events: ChangeEvents, schema: TableSchema) -> pa.StructArray:
        """What updates changed; empty lists are null, as in Debezium."""
        removed, truncated = events.removed_fields, events.truncated_arrays
        fields = self._documents.fields(schema.id)
        if fields and (
            pc.sum(pc.list_value_length(removed)).as_py() or pc.sum(pc.list_value_length(truncated)).as_py()
        ):
            removed = pa.array([_renamed(fields, names) for names in removed.to_pylist()], pa.list_(pa.string()))
            cut = [_renamed_arrays(fields, arrays) for arrays in truncated.to_pylist()]
            truncated = pa.array(cut, DESCRIPTION_TYPE.field("truncatedArrays").type)
        parts = [
            _unless_empty(removed),
            self._documents.changed(schema, events.updated_fields),
            _unless_empty(truncated),
        ]
        typed = [part.cast(field.type) for part, field in zip(parts, DESCRIPTION_TYPE, strict=True)]
        return pa.StructArray.from_arrays(typed, fields=list(DESCRIPTION_TYPE), mask=mask(~events.is_described))

    def _marks(self, events: ChangeEvents, order: Ints, kept: Any) -> pa.RecordBatch:
        """Where transactions begin and end among the events that are kept."""
        marks: list[dict[str, Any]] = []
        if (self._has_marks and events.sessions.null_count < len(events)) or self._transaction is not None:
            ids = pc.binary_join_element_wise(events.sessions, events.transaction_numbers.cast(pa.string()), ":")
            times = _times(events).to_pylist()
            for row in np.flatnonzero(kept).tolist():
                id_ = ids[row].as_py()
                if self._transaction is not None and id_ != self._transaction[0]:
                    marks.append(_mark(int(order[row]) - 2, END, *self._transaction))
                    self._transaction = None
                if id_ is not None and self._transaction is None:
                    marks.append(_mark(int(order[row]) - 1, BEGIN, id_, times[row]))
                if id_ is not None:
                    self._transaction = id_, times[row]
        return pa.RecordBatch.from_pylist(marks, schema=MARKS)


def pieces(events: ChangeEvents, lookup: DocumentLookup) -> Iterator[ChangeEvents]:
    """The events, those that drop or rename a collection each alone, and not too many whose documents are looked up."""
    is_alone = structural(events)
    lacking = np.cumsum(lacks_document(events))
    start = 0
    while start < len(events):
        if is_alone[start]:
            end = start + 1
        else:
            ahead = np.flatnonzero(is_alone[start:])
            end = start + int(ahead[0]) if len(ahead) else len(events)
            before = int(lacking[start - 1]) if start else 0
            end = min(end, max(int(np.searchsorted(lacking, before + lookup.size, side="right")), start + 1))
        yield events if (start, end) == (0, len(events)) else ChangeEvents(events.documents.take(np.arange(start, end)))
        start = end


def _of_documents(events: ChangeEvents) -> ChangeEvents:
    """Those that change documents; an `invalidate` ends the stream, which says so itself."""
    rows = np.flatnonzero(pc.is_in(events.operations, pa.array(list(_CODES))).to_numpy(zero_copy_only=False))
    return events if len(rows) == len(events) else ChangeEvents(events.documents.take(rows))


def _mark(order: int, status: str, id_: str, ts_us: int) -> dict[str, Any]:
    return {"order": order, "status": status, "id": id_, "ts_us": ts_us}


def _times(events: ChangeEvents, *, is_coarse: bool = False) -> pa.Array:
    """Microseconds of the wall clock; the seconds of the cluster time without one, or if configured.

    The time of the read without both. Debezium: AbstractSourceInfoStructMaker.commonStruct.
    """
    seconds = (events.cluster_times.astype(np.uint64) >> np.uint64(32)).astype(np.int64)
    coarse = pa.array(seconds * 1_000_000, pa.int64(), mask=events.cluster_times == NO_TIME)
    times = coarse if is_coarse else pc.coalesce(pc.multiply(events.wall_times, 1000), coarse)
    return times.fill_null(time.time_ns() // 1000)


def _source(events: ChangeEvents, set_name: str | None) -> pa.StructArray:
    numbers = pa.array((events.cluster_times & 0xFFFFFFFF).astype(np.int32))
    columns = [numbers, events.sessions, events.transaction_numbers, events.wall_times]
    return source_column(len(events), columns, set_name)


def source_column(count: int, columns: Sequence[pa.Array], set_name: str | None) -> pa.StructArray:
    """The column `source` with these first columns, and with the name of the replica set if one is given."""
    nothing = [pa.nulls(count, field.type) for field in SOURCE_TYPE]
    nothing[: len(columns)] = columns
    if set_name is not None:
        nothing[SOURCE_TYPE.get_field_index("rs")] = repeat(set_name, count)
    return pa.StructArray.from_arrays(nothing, fields=list(SOURCE_TYPE))


def _unless_empty(lists: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return lists.take(indices(np.arange(len(lists)), lengths == 0))


def _renamed(fields: CollectionFields, names: list[str] | None) -> list[str] | None:
    return None if names is None else [new for name in names if (new := fields.name(name)) is not None]


def _renamed_arrays(fields: CollectionFields, arrays: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    if arrays is None:
        return None
    return [{**each, "field": new} for each in arrays if (new := fields.name(each["field"])) is not None]
