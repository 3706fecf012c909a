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
from tailrace.errors import DecodeError
from tailrace.events.converter import Converter
from tailrace.events.header_texts import header_texts
from tailrace.events.headers import HEADERS, HeaderWriter, context
from tailrace.events.images import ImageWriter, image_parts
from tailrace.events.layouts import Batch, Layout, Layouts
from tailrace.events.parts import Integers, Part, Parts, flat, gather, text_of, widths
from tailrace.events.plan import CLOCKS, TIME, Bools, EventPlans, Origin, OtherKey, RecordMember, times
from tailrace.events.schema_change import SchemaChangeWriter
from tailrace.events.source import SourceWriter
from tailrace.model.arrow import flags, indices, literal, mask, repeat
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.cuts import cuts, pieces
from tailrace.model.source import AFTER, BEFORE, SourceBlock
from tailrace.model.text.json import Fragment, dump, fragment

KAFKA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", HEADERS),
        ("timestamp", TIME),
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
        plans = EventPlans(config, source)
        self._layouts = Layouts(config, plans)
        self._images = ImageWriter(config)
        self._key, self._value = Converter.of(config, "key"), Converter.of(config, "value")
        self._source = SourceWriter(plans.source, self._value.style)
        self._header = Converter.of(config, "header")
        self._headers = HeaderWriter(context(config, source.connector, run_id), self._header)
        self._schema_changes = SchemaChangeWriter(config, source)

    def encode(self, batch: ChangeBatch | ControlBatch) -> Iterator[pa.RecordBatch]:
        """The batch's records in order, some 16 MB of keys and values at a time; a row that is larger comes alone.

        Raises DecodeError for a value without JSON form or an event of more than 2 GiB.
        """
        control, changes = self._schema_changes.parted(batch)
        if control is not None:
            yield self._control(control)
        if changes is not None:
            layout = self._layouts.of(changes.table)
            for piece in pieces(changes):
                yield from self._records(piece, layout)

    def encode_all(
        self, batches: Iterable[Batch], rows_of: Callable[[Batch], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """The records of batches, those of a table in order; tables of one structure with few rows are encoded at once.

        `rows_of` encodes a batch alone, in the place of `encode`, and handles what cannot be encoded.
        """
        for group in self._layouts.together(batches):
            yield from self._encoded(group) or chain.from_iterable(map(rows_of, group))

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
        plan = layout.plan
        before, after = rows.column(BEFORE), rows.column(AFTER)
        images = {
            BEFORE: self._images.before(rows, plan.table) if before.null_count == 0 else None,
            AFTER: self._images.after(rows, plan.table) if after.null_count == 0 else None,
        }
        pieces: list[Part | Fragment | Parts] = [layout.value_wrap[0]]
        nanos = time.time_ns()
        for index, member in enumerate(plan.members):
            pieces.append(f"{',' if index else '{'}{dump(member.field.name)}:")
            if member.origin is Origin.IMAGE:
                image = images[member.column]
                pieces.append("null" if image is None else image_parts(plan.envelope, image))
            else:
                pieces.append(self._member(member, rows, layout, nanos))
        value = flat(*pieces, "}", layout.value_wrap[1])
        column = next((each for each in plan.key_columns(rows) if rows.column(each).null_count == 0), None)
        if column is None:
            return _Group(places, None, value)
        key = self._images.key(rows.column(column), plan, images.get(column))
        return _Group(places, None if key is None else flat(layout.key_wrap[0], key, layout.key_wrap[1]), value)

    def _member(self, member: RecordMember, rows: pa.RecordBatch, layout: Layout, nanos: int) -> str | Fragment | Parts:
        """One member of the envelopes, which were built at one instant; images are written elsewhere."""
        name = member.field.name
        if member.origin is Origin.BLOCK:
            return self._source.parts(rows, layout.source)
        if member.origin is Origin.CLOCK:
            return str(nanos // CLOCKS[name])
        at = rows.schema.get_field_index(name)
        if at < 0:
            return "null"
        return fragment(rows.column(at), member.field.schema, self._value.style)

    def _assemble(
        self, rows: pa.RecordBatch, topic: pa.Array, key: pa.Array, value: pa.Array, layout: Layout
    ) -> pa.RecordBatch:
        count = len(rows)
        out = pa.record_batch(
            [topic, pa.nulls(count, pa.int32()), key, value, self._header_column(rows, layout), times(rows)],
            schema=KAFKA,
        )
        tombstones = layout.plan.tombstones(rows)
        return out if tombstones is None else _with_tombstones(out, tombstones)

    def _header_column(self, rows: pa.RecordBatch, layout: Layout) -> pa.Array:
        if not layout.plan.has_headers:
            return pa.nulls(len(rows), HEADERS)
        other = layout.plan.other_key(rows)
        if other is None:
            return self._headers.context(len(rows))
        text = self._other_key(other, layout)
        present, names = other.keys.is_valid(), literal(None)
        for name, has_it in other.rows.items():
            names = pc.if_else(mask(has_it), literal(name), names)
        return self._headers.with_other_key(names, pc.if_else(present, text, literal(None)))

    def _other_key(self, other: OtherKey, layout: Layout) -> pa.Array:
        """The other key of each row, as a header's value."""
        keys, plan = other.keys, layout.plan
        if self._header.kind == JSON:
            key = self._images.header_key(keys, plan) or []
            return text_of(flat(layout.header_wrap[0], key, layout.header_wrap[1]), 0, len(keys), layout.where)
        assert plan.envelope.key is not None
        names = [field.name for field, _ in plan.key]
        struct = pa.StructArray.from_arrays(plan.key_values(keys), names=names)
        return header_texts(struct, plan.envelope.key, self._header, layout.where)

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


def _same_images(rows: pa.RecordBatch) -> list[Integers | None]:
    """The rows grouped by which images they have; [None] when they all have the same."""
    before, after = rows.column(BEFORE), rows.column(AFTER)
    if before.null_count in (0, len(rows)) and after.null_count in (0, len(rows)):
        return [None]
    kind = flags(before.is_valid()) * 2 + flags(after.is_valid())
    return [np.flatnonzero(kind == each) for each in np.unique(kind)]


def _with_tombstones(records: pa.RecordBatch, deleted: Bools) -> pa.RecordBatch:
    """Each deleted record followed by its tombstone."""
    index = np.repeat(np.arange(len(records)), deleted.astype(np.int64) + 1)
    tombstone = np.concatenate([[False], index[1:] == index[:-1]])
    columns = [column.take(indices(index)) for column in records.columns]
    value = records.column("value").take(indices(index, tombstone))
    columns[KAFKA.get_field_index("value")] = value
    return pa.record_batch(columns, schema=KAFKA)
