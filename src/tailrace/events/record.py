"""Kafka records of change and control batches: Debezium's keys, values, headers and tombstones as Arrow columns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.events.encode.arrow import flags, indices, literal, repeat
from tailrace.events.encode.json import Fragment, dump, encode, fragment
from tailrace.events.envelope import STRING, TRANSACTION_BLOCK, Envelope, envelope
from tailrace.events.headers import HEADERS, HeaderWriter
from tailrace.events.parts import Integers, Parts, flat, struct_parts, text_of, widths
from tailrace.events.source import SourceWriter
from tailrace.events.topics import TopicNaming
from tailrace.events.unavailable import placeholder_text
from tailrace.model.change import DELETE, ChangeBatch, ControlBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableId, TableSchema

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

_OUTPUT_BYTES = 16 << 20
_INPUT_BYTES = 32 << 20


@dataclass(frozen=True)
class _Layout:
    """What is constant about the records of one table under one schema."""

    table: TableSchema
    envelope: Envelope
    key_extra: tuple[str, str] | None
    key_wrap: tuple[str, str]
    value_wrap: tuple[str, str]
    key_header: str


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
        self._naming = TopicNaming(config)
        self._block = source
        self._defaults = config.flag("value.converter.replace.null.with.default")
        self._key_schemas = config.flag("key.converter.schemas.enable")
        self._value_schemas = config.flag("value.converter.schemas.enable")
        self._tombstones = config.flag("tombstones.on.delete")
        self._placeholder = config.text("unavailable.value.placeholder")
        server = config.text("topic.prefix")
        self._source = SourceWriter(source, server, self._defaults)
        self._headers = HeaderWriter(source.connector, server, run_id, config.flag("extended.headers.enabled"))
        self._layouts: dict[TableId, _Layout] = {}

    def encode(self, batch: ChangeBatch | ControlBatch) -> Iterator[pa.RecordBatch]:
        """The batch's records in order, some 16 MB of keys and values at a time; a row that is larger comes alone.

        Raises DecodeError for a value without JSON form or an event of more than 2 GiB.
        """
        if isinstance(batch, ControlBatch):
            yield self._control(batch)
            return
        layout = self._layout(batch.table)
        for piece in _pieces(batch):
            yield from self._records(piece, layout)

    def _records(self, batch: ChangeBatch, layout: _Layout) -> Iterator[pa.RecordBatch]:
        groups = [self._group(batch, places, layout) for places in _same_images(batch.rows)]
        sizes = np.zeros(len(batch), np.int64)
        for group in groups:
            rows = len(batch) if group.places is None else len(group.places)
            size = widths(group.value, rows) + (0 if group.key is None else widths(group.key, rows))
            if group.places is None:
                sizes = size
            else:
                sizes[group.places] = size
        for start, stop in _cuts(sizes):
            where = f"table {layout.table.id}"
            key = _gather([(group.places, group.key) for group in groups], start, stop, where)
            value = _gather([(group.places, group.value) for group in groups], start, stop, where)
            yield self._assemble(batch.rows.slice(start, stop - start), key, value, layout)

    def _group(self, batch: ChangeBatch, places: Integers | None, layout: _Layout) -> _Group:
        rows = batch.rows if places is None else batch.rows.take(indices(places))
        before, after = rows.column("before"), rows.column("after")
        has_before, has_after = before.null_count == 0, after.null_count == 0
        old = self._image(before, layout) if has_before else []
        new = self._marked(rows, self._image(after, layout), layout) if has_after else []
        names = [field.name for field in layout.envelope.row.fields]
        value = flat(
            layout.value_wrap[0],
            '{"before":',
            struct_parts(names, old) if has_before else "null",
            ',"after":',
            struct_parts(names, new) if has_after else "null",
            ',"source":',
            self._source.parts(rows, layout.table.id),
            ',"transaction":',
            self._transaction(rows),
            ',"op":',
            _one_or_all(rows.column("op")),
            _clock(),
            layout.value_wrap[1],
        )
        image, struct = (new, after) if has_after else (old, before)
        return _Group(places, self._key(struct, image, layout) if image else None, value)

    def _image(self, struct: pa.StructArray, layout: _Layout) -> list[Fragment]:
        return [
            fragment(struct.field(index), column.schema, self._defaults)
            for index, column in enumerate(layout.table.columns)
        ]

    def _marked(self, rows: pa.RecordBatch, image: list[Fragment], layout: _Layout) -> list[Fragment]:
        """The image with the placeholder in place of large values that the log did not repeat."""
        at = rows.schema.get_field_index("unchanged")
        if at < 0:
            return image
        unchanged_of = rows.column(at)
        for index, field in enumerate(unchanged_of.type):
            unchanged = unchanged_of.field(index).fill_null(pa.scalar(False, pa.bool_()))
            if not unchanged.true_count:
                continue
            place = [column.name for column in layout.table.columns].index(field.name)
            text = placeholder_text(layout.table.columns[place].schema, self._placeholder)
            if text is not None:
                known = text_of(flat(image[place]), 0, len(rows), f"table {layout.table.id}")
                image[place] = Fragment("", pc.if_else(unchanged, literal(text), known))
        return image

    def _key(self, struct: pa.StructArray, image: list[Fragment], layout: _Layout) -> Parts | None:
        """The key from an image, whose texts serve again unless nulls read differently in key and value."""
        schema = layout.envelope.key
        if schema is None:
            return None
        values = []
        for name in layout.table.key:
            index = struct.type.get_field_index(name)
            again = self._defaults or struct.field(index).null_count == 0
            values.append(image[index] if again else fragment(struct.field(index), layout.table.columns[index].schema))
        return flat(layout.key_wrap[0], _key_struct(values, schema, layout), layout.key_wrap[1])

    def _transaction(self, rows: pa.RecordBatch) -> str | Fragment:
        at = rows.schema.get_field_index("transaction")
        return "null" if at < 0 else fragment(rows.column(at), TRANSACTION_BLOCK)

    def _assemble(self, rows: pa.RecordBatch, key: pa.Array, value: pa.Array, layout: _Layout) -> pa.RecordBatch:
        count = len(rows)
        topic = repeat(layout.envelope.topic, count)
        stamp = rows.column("ts_us").cast(pa.timestamp("us", "UTC"))
        out = pa.record_batch(
            [topic, pa.nulls(count, pa.int32()), key, value, self._header_column(rows, layout), stamp], schema=KAFKA
        )
        deleted = pc.equal(rows.column("op"), literal(DELETE))
        return _with_tombstones(out, deleted) if self._tombstones and deleted.true_count else out

    def _header_column(self, rows: pa.RecordBatch, layout: _Layout) -> pa.Array:
        at = rows.schema.get_field_index("other_key")
        if at < 0 or rows.column(at).null_count == len(rows) or layout.envelope.key is None:
            return self._headers.context(len(rows))
        other = rows.column(at)
        present = other.is_valid()
        values = [
            fragment(other.field(index), layout.table.column(name).schema)
            for index, name in enumerate(layout.table.key)
        ]
        parts = flat(layout.key_header, _key_struct(values, layout.envelope.key, layout), "}")
        text = text_of(parts, 0, len(rows), f"table {layout.table.id}")
        names = pc.if_else(
            pc.equal(rows.column("op"), literal(DELETE)), literal("__debezium.newkey"), literal("__debezium.oldkey")
        )
        nothing = literal(None)
        return self._headers.with_other_key(pc.if_else(present, names, nothing), pc.if_else(present, text, nothing))

    def _control(self, batch: ControlBatch) -> pa.RecordBatch:
        count, rows = len(batch), batch.rows
        where = f"topic {batch.topic}"
        columns = []
        for name, schema, schemas in (
            ("key", batch.key_schema, self._key_schemas),
            ("value", batch.value_schema, self._value_schemas),
        ):
            left, right = _wrap(schema, schemas)
            columns.append(text_of([left, rows.column(name).cast(pa.string()), right], 0, count, where))
        partition = rows.column("partition").cast(pa.int32())
        nothing = [pa.nulls(count, HEADERS), pa.nulls(count, KAFKA.field("timestamp").type)]
        return pa.record_batch([repeat(batch.topic, count), partition, *columns, *nothing], schema=KAFKA)

    def _layout(self, table: TableSchema) -> _Layout:
        known = self._layouts.get(table.id)
        if known is None or known.table != table:
            made = envelope(table, self._naming, self._block)
            key = made.key
            known = self._layouts[table.id] = _Layout(
                table,
                made,
                self._naming.key_field(table.id),
                ("", "") if key is None else _wrap(key, self._key_schemas),
                _wrap(made.value, self._value_schemas),
                "" if key is None else _wrap(key, True)[0],
            )
        return known


def _wrap(schema: ConnectSchema, schemas: bool) -> tuple[str, str]:
    return (f'{{"schema":{dump(schema.to_json())},"payload":', "}") if schemas else ("", "")


def _clock() -> str:
    """The end of the envelope: when it was built, one instant for a batch."""
    nanos = time.time_ns()
    return f',"ts_ms":{nanos // 1_000_000},"ts_us":{nanos // 1000},"ts_ns":{nanos}}}'


def _key_struct(values: list[Fragment], schema: ConnectSchema, layout: _Layout) -> Parts:
    extra = [] if layout.key_extra is None else [Fragment(dump(layout.key_extra[1]), None)]
    return struct_parts([field.name for field in schema.fields], [*values, *extra])


def _one_or_all(ops: pa.Array) -> Fragment:
    kinds = ops.unique()
    return Fragment(dump(kinds[0].as_py()), None) if len(kinds) == 1 else Fragment("", encode(ops, STRING))


def _pieces(batch: ChangeBatch) -> Iterator[ChangeBatch]:
    """The batch in pieces small enough that no column's text can overflow: halves of halves, down to one row."""
    if batch.rows.nbytes <= _INPUT_BYTES or len(batch) == 1:
        if len(batch):
            yield batch
        return
    half = len(batch) // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half, len(batch) - half))


def _same_images(rows: pa.RecordBatch) -> list[Integers | None]:
    """The rows grouped by which images they have; [None] when they all have the same."""
    before, after = rows.column("before"), rows.column("after")
    if before.null_count in (0, len(rows)) and after.null_count in (0, len(rows)):
        return [None]
    kind = flags(before.is_valid()) * 2 + flags(after.is_valid())
    return [np.flatnonzero(kind == each) for each in np.unique(kind)]


def _cuts(sizes: Integers) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose sizes do not pass the limit, or of one row that does."""
    ends = np.cumsum(sizes)
    start, done = 0, 0
    while start < len(sizes):
        stop = max(start + 1, int(np.searchsorted(ends, done + _OUTPUT_BYTES, side="right")))
        yield start, stop
        start, done = stop, int(ends[stop - 1])


def _gather(groups: list[tuple[Integers | None, Parts | None]], start: int, stop: int, where: str) -> pa.Array:
    """The joined texts of rows start to stop, in the batch's order."""
    texts: list[pa.Array] = []
    order: list[npt.NDArray[np.int64]] = []
    for places, parts in groups:
        low, high = (start, stop) if places is None else np.searchsorted(places, [start, stop]).tolist()
        nothing = parts is None or low == high
        texts.append(pa.nulls(high - low, pa.string()) if nothing else text_of(parts or [], low, high - low, where))
        order.append(np.arange(start, stop) if places is None else places[low:high])
    if len(texts) == 1:
        return texts[0]
    return pa.concat_arrays(texts).take(indices(np.argsort(np.concatenate(order))))


def _with_tombstones(records: pa.RecordBatch, deleted: pa.Array) -> pa.RecordBatch:
    """Each delete followed by a record of the same key and headers without a value."""
    times = flags(deleted).astype(np.int64) + 1
    index = np.repeat(np.arange(len(records)), times)
    tombstone = np.concatenate([[False], index[1:] == index[:-1]])
    columns = [column.take(indices(index)) for column in records.columns]
    value = records.column("value").take(indices(index, tombstone))
    columns[KAFKA.get_field_index("value")] = value
    return pa.record_batch(columns, schema=KAFKA)
