"""Kafka records of change and control batches: Debezium's keys, values, headers and tombstones as Arrow columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.converter_names import JSON
from tailrace.config.options.events import EXTENDED_HEADERS_ENABLED
from tailrace.config.options.filters import TOMBSTONES_ON_DELETE
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.errors import DecodeError
from tailrace.events.converter import Converter
from tailrace.events.envelope import CLOCKS, MESSAGE
from tailrace.events.header_texts import header_texts
from tailrace.events.headers import HEADERS, HeaderWriter
from tailrace.events.images import ImageWriter, image_parts
from tailrace.events.layouts import Batch, Layout, Layouts
from tailrace.events.parts import Integers, Part, Parts, flat, gather, text_of, widths
from tailrace.events.schema_change import SchemaChangeWriter
from tailrace.events.source import SourceWriter
from tailrace.model.arrow import flags, indices, literal, repeat
from tailrace.model.change import DELETE, PLAIN_KEY, ChangeBatch, ControlBatch
from tailrace.model.cuts import cuts, pieces
from tailrace.model.schema import STRING, Field
from tailrace.model.source import AFTER, BEFORE, SOURCE, SourceBlock
from tailrace.model.text.json import Fragment, dump, encode, fragment

KAFKA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", HEADERS),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)


@dataclass
class _Group:
    """Rows with the same images present: their places in the batch (None: all of them) and their texts, unjoined."""

    places: Integers | None
    key: Parts | None
    value: Parts


class RecordEncoder:
    """Encodes batches into rows of the schema KAFKA; holds caches, so keep it for a run and use it in one thread.

    `run_id` is what the header `__debezium.context.runId` says.
    """

    def __init__(self, config: Config, source: SourceBlock, run_id: str) -> None:
        self._layouts = Layouts(config, source)
        self._images = ImageWriter(config)
        self._key, self._value = Converter.of(config, "key"), Converter.of(config, "value")
        self._tombstones = config[TOMBSTONES_ON_DELETE]
        server = config[TOPIC_PREFIX]
        self._source = SourceWriter(source, server, self._value.style)
        self._header = Converter.of(config, "header")
        extended = config[EXTENDED_HEADERS_ENABLED]
        self._headers = HeaderWriter(source.connector, server, run_id, extended, self._header)
        self._schema_changes = SchemaChangeWriter(config, source)

    def encode(self, batch: ChangeBatch | ControlBatch) -> Iterator[pa.RecordBatch]:
        """The batch's records in order, some 16 MB of keys and values at a time; a row that is larger comes alone.

        Raises DecodeError for a value without JSON form or an event of more than 2 GiB.
        """
        control = batch if isinstance(batch, ControlBatch) else self._schema_changes.record(batch)
        if control is not None:
            yield self._control(control)
        if isinstance(batch, ControlBatch) or batch.schema_change is not None:
            return
        layout = self._layouts.of(batch.table)
        for piece in pieces(batch):
            yield from self._records(piece, layout)

    def encode_all(
        self, batches: Iterable[Batch], one: Callable[[Batch], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """The records of batches, those of a table in order; tables of one structure with few rows are encoded at once.

        `one` encodes a batch alone, in the place of `encode`, and handles what cannot be encoded.
        """
        for group in self._layouts.together(batches):
            yield from self._encoded(group) or chain.from_iterable(map(one, group))

    def _encoded(self, group: Sequence[Batch]) -> list[pa.RecordBatch]:
        """The records of a group; none of one batch, and of a group that has a value that cannot be encoded."""
        changes = [batch for batch in group if isinstance(batch, ChangeBatch)]
        if len(changes) == 1 or len(changes) < len(group):
            return []
        try:
            return list(self._records(*self._layouts.joined(changes)))
        except DecodeError:
            return []  # one after the other, so that the error names its table

    def _records(self, batch: ChangeBatch, layout: Layout) -> Iterator[pa.RecordBatch]:
        groups = [self._group(batch, places, layout) for places in _same_images(batch.rows)]
        sizes = np.zeros(len(batch), np.int64)
        for group in groups:
            rows = len(batch) if group.places is None else len(group.places)
            size = widths(group.value, rows) + (0 if group.key is None else widths(group.key, rows))
            if group.places is None:
                sizes = size
            else:
                sizes[group.places] = size
        for start, stop in cuts(sizes):
            key = gather([(group.places, group.key) for group in groups], start, stop, layout.where)
            value = gather([(group.places, group.value) for group in groups], start, stop, layout.where)
            topic = text_of([layout.topic], start, stop - start, layout.where)
            yield self._assemble(batch.rows.slice(start, stop - start), topic, key, value, layout)

    def _group(self, batch: ChangeBatch, places: Integers | None, layout: Layout) -> _Group:
        rows = batch.rows
        if places is not None:
            rows, layout = rows.take(indices(places)), layout.take(places)
        before, after = rows.column("before"), rows.column("after")
        table, envelope = layout.table, layout.envelope
        old = self._images.before(rows, table) if before.null_count == 0 else None
        new = self._images.after(rows, table) if after.null_count == 0 else None
        pieces: list[Part | Fragment | Parts] = [layout.value_wrap[0]]
        nanos = time.time_ns()
        for index, field in enumerate(envelope.value.fields):
            pieces.append(f"{',' if index else '{'}{dump(field.name)}:")
            if field.name in (BEFORE, AFTER, MESSAGE):
                image = old if field.name == BEFORE else new
                pieces.append("null" if image is None else image_parts(envelope, image))
            else:
                pieces.append(self._member(field, rows, layout, nanos))
        value = flat(*pieces, "}", layout.value_wrap[1])
        if old is None and new is None:
            return _Group(places, None, value)
        struct, image = (before, old) if new is None else (after, new)
        at = rows.schema.get_field_index(PLAIN_KEY)
        struct, image = (struct, image) if at < 0 else (rows.column(at), None)
        key = self._images.key(struct, table, envelope, image)
        return _Group(places, None if key is None else flat(layout.key_wrap[0], key, layout.key_wrap[1]), value)

    def _member(self, field: Field, rows: pa.RecordBatch, layout: Layout, nanos: int) -> str | Fragment | Parts:
        """One member of the envelopes, which were built at one instant; images are written elsewhere."""
        if field.name == SOURCE:
            return self._source.parts(rows, layout.source)
        if field.name in CLOCKS:
            return str(nanos // CLOCKS[field.name])
        at = rows.schema.get_field_index(field.name)
        if at < 0:
            return "null"
        if field.name == "op":
            return _one_or_all(rows.column(at))
        return fragment(rows.column(at), field.schema, self._value.style)

    def _assemble(
        self, rows: pa.RecordBatch, topic: pa.Array, key: pa.Array, value: pa.Array, layout: Layout
    ) -> pa.RecordBatch:
        count = len(rows)
        stamp = rows.column("ts_us").cast(pa.timestamp("us", "UTC"))
        out = pa.record_batch(
            [topic, pa.nulls(count, pa.int32()), key, value, self._header_column(rows, layout), stamp], schema=KAFKA
        )
        deleted = pc.equal(rows.column("op"), literal(DELETE))
        return _with_tombstones(out, deleted) if self._tombstones and deleted.true_count else out

    def _header_column(self, rows: pa.RecordBatch, layout: Layout) -> pa.Array:
        if layout.table.id.is_message:
            return pa.nulls(len(rows), HEADERS)
        at = rows.schema.get_field_index("other_key")
        if at < 0 or rows.column(at).null_count == len(rows) or layout.envelope.key is None:
            return self._headers.context(len(rows))
        other = rows.column(at)
        present = other.is_valid()
        text = self._other_key(other, layout)
        names = pc.if_else(
            pc.equal(rows.column("op"), literal(DELETE)), literal("__debezium.newkey"), literal("__debezium.oldkey")
        )
        nothing = literal(None)
        return self._headers.with_other_key(pc.if_else(present, names, nothing), pc.if_else(present, text, nothing))

    def _other_key(self, other: pa.StructArray, layout: Layout) -> pa.Array:
        """The key of each row, as a header's value."""
        key_schema = layout.envelope.key
        assert key_schema is not None
        if self._header.kind == JSON:
            key = self._images.header_key(other, layout.table, layout.envelope) or []
            return text_of(flat(layout.header_wrap[0], key, layout.header_wrap[1]), 0, len(other), layout.where)
        columns = [other.field(other.type.get_field_index(name)) for name in layout.table.key]
        extra = layout.envelope.key_extra
        columns += [] if extra is None else [repeat(extra, len(other))]
        struct = pa.StructArray.from_arrays(columns, names=[field.name for field in key_schema.fields])
        return header_texts(struct, key_schema, self._header, layout.where)

    def _control(self, batch: ControlBatch) -> pa.RecordBatch:
        count, rows = len(batch), batch.rows
        where = f"topic {batch.topic}"
        columns = []
        for name, schema, converter in (
            ("key", batch.key_schema, self._key),
            ("value", batch.value_schema, self._value),
        ):
            left, right = converter.wrap(schema)
            columns.append(text_of([left, rows.column(name).cast(pa.string()), right], 0, count, where))
        partition = rows.column("partition").cast(pa.int32())
        headers = self._headers.context(count) if batch.has_context else pa.nulls(count, HEADERS)
        stamp = pa.nulls(count, KAFKA.field("timestamp").type)
        return pa.record_batch([repeat(batch.topic, count), partition, *columns, headers, stamp], schema=KAFKA)


def _one_or_all(ops: pa.Array) -> Fragment:
    kinds = ops.unique()
    return Fragment(dump(kinds[0].as_py()), None) if len(kinds) == 1 else Fragment("", encode(ops, STRING))


def _same_images(rows: pa.RecordBatch) -> list[Integers | None]:
    """The rows grouped by which images they have; [None] when they all have the same."""
    before, after = rows.column("before"), rows.column("after")
    if before.null_count in (0, len(rows)) and after.null_count in (0, len(rows)):
        return [None]
    kind = flags(before.is_valid()) * 2 + flags(after.is_valid())
    return [np.flatnonzero(kind == each) for each in np.unique(kind)]


def _with_tombstones(records: pa.RecordBatch, deleted: pa.Array) -> pa.RecordBatch:
    """Each delete followed by a record of the same key and headers without a value."""
    times = flags(deleted).astype(np.int64) + 1
    index = np.repeat(np.arange(len(records)), times)
    tombstone = np.concatenate([[False], index[1:] == index[:-1]])
    columns = [column.take(indices(index)) for column in records.columns]
    value = records.column("value").take(indices(index, tombstone))
    columns[KAFKA.get_field_index("value")] = value
    return pa.record_batch(columns, schema=KAFKA)
