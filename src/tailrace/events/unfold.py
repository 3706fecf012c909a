"""Converts change and control batches to Records: envelope, key and headers as columns instead of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import EXTENDED_HEADERS_ENABLED, UNAVAILABLE_VALUE_PLACEHOLDER
from tailrace.config.options.filters import TOMBSTONES_ON_DELETE
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.config.topics import TopicNaming
from tailrace.events.envelope import CLOCKS, MESSAGE, Envelope, envelope
from tailrace.events.headers import context
from tailrace.events.offset_entries import offset_entries
from tailrace.events.parts import text_of
from tailrace.events.payload import arrow_type, replaced, required
from tailrace.events.records import Bools, Header, Part, Records, struct
from tailrace.events.schema_change import SchemaChangeWriter
from tailrace.events.source import parts_of, snapshot_of
from tailrace.events.unavailable import placeholder_text
from tailrace.model.arrow import flags, indices, join, kept_repeat, literal, repeat
from tailrace.model.change import DELETE, PLAIN_KEY, ChangeBatch, ControlBatch
from tailrace.model.cuts import pieces
from tailrace.model.schema import STRING, Field
from tailrace.model.source import AFTER, BEFORE, SOURCE, SourceBlock
from tailrace.model.table import TableId, TableSchema
from tailrace.version import __version__

_STAMP = pa.timestamp("us", "UTC")


class Unfolder:
    """Makes Records of batches; keep one for a run, it remembers the tables' schemas."""

    def __init__(self, config: Config, source: SourceBlock, run_id: str) -> None:
        self._naming = TopicNaming(config)
        self._block = source
        self._server = config[TOPIC_PREFIX]
        self._placeholder = config[UNAVAILABLE_VALUE_PLACEHOLDER]
        self._tombstones = config[TOMBSTONES_ON_DELETE]
        wanted = config[EXTENDED_HEADERS_ENABLED]
        names = context(source.connector, self._server, run_id) if wanted else {}
        self._context = tuple(Header.of(name, STRING, text) for name, text in names.items())
        self._schema_changes = SchemaChangeWriter(config, source)
        self._envelopes: dict[TableId, tuple[TableSchema, Envelope]] = {}

    def unfold(self, batch: ChangeBatch | ControlBatch) -> Iterator[list[Records]]:
        """The batch's records, group by group, in pieces of bounded size."""
        control = batch if isinstance(batch, ControlBatch) else self._schema_changes.record(batch)
        if control is not None:
            yield [self._control(control)]
        if isinstance(batch, ControlBatch) or batch.schema_change is not None:
            return
        for piece in pieces(batch):
            yield self._records(piece, self._envelope(batch.table))

    def _records(self, batch: ChangeBatch, layout: Envelope) -> list[Records]:
        rows, count = batch.rows, len(batch)
        before, after = rows.column("before"), rows.column("after")
        olds, news = flags(before.is_valid()), flags(after.is_valid())
        key = self._key(batch, layout, news) if (olds | news).any() else None
        records = Records(
            np.arange(count, dtype=np.int64) * 2,
            kept_repeat(layout.topic, count),
            pa.nulls(count, pa.int32()),
            rows.column("ts_us").cast(_STAMP),
            key,
            self._value(batch, layout),
            () if batch.table.id.is_message else (*self._other_key(batch, layout), *self._context),
            self._tombstones,
            offset_entries=offset_entries(batch, self._block.offset),
        )
        keyed, unkeyed = records.split(olds | news)
        groups = [keyed, unkeyed.with_(key=None)]
        deleted = flags(pc.equal(rows.column("op"), literal(DELETE)))
        if self._tombstones and deleted.any():
            # A tombstone follows its delete: its order is the odd number in between.
            dead = records.take(np.flatnonzero(deleted))
            groups.append(dead.with_(order=dead.order + 1, value=None))
        return [group for group in groups if len(group)]

    def _value(self, batch: ChangeBatch, layout: Envelope) -> Part:
        nanos = time.time_ns()
        members = layout.value.fields
        parts = [(field.name, Part(field.schema, self._member(field, batch, layout, nanos))) for field in members]
        return struct(layout.value, parts, len(batch))

    def _member(self, field: Field, batch: ChangeBatch, layout: Envelope, nanos: int) -> pa.Array:
        """One member of the envelopes, which were built at one instant."""
        if field.name in (BEFORE, AFTER):
            return self._image(batch, field.name, layout)
        if field.name == MESSAGE:
            return self._image(batch, AFTER, layout)
        if field.name == SOURCE:
            return self._source(batch)
        if field.name in CLOCKS:
            return pa.repeat(pa.scalar(nanos // CLOCKS[field.name], pa.int64()), len(batch))
        column = batch.column(field.name)
        return pa.nulls(len(batch), arrow_type(field.schema)) if column is None else column

    def _image(self, batch: ChangeBatch, name: str, layout: Envelope) -> pa.Array:
        """A row image as Connect holds it: zeros where an old image lacks a required column, placeholders in a new."""
        image = batch.rows.column(name)
        marks = batch.column("unchanged") if name == AFTER else None
        absent = image.is_null()
        if layout.row.type != "struct":
            return pc.if_else(absent, literal(None), image.field(0))
        columns = []
        for index, column in enumerate(batch.table.value_columns):
            values = image.field(index)
            place = -1 if marks is None else marks.type.get_field_index(column.name)
            if marks is not None and place >= 0:
                unchanged = marks.field(place).fill_null(pa.scalar(False, pa.bool_()))
                text = (
                    placeholder_text(column.schema, column.placeholder or self._placeholder)
                    if unchanged.true_count
                    else None
                )
                values = values if text is None else replaced(values, json.loads(text), column.schema, unchanged)
            columns.append(required(values, column.schema, absent))
        parts = [
            (field.name, Part(field.schema, values)) for field, values in zip(layout.row.fields, columns, strict=True)
        ]
        return struct(layout.row, parts, len(batch), absent).values

    def _source(self, batch: ChangeBatch) -> pa.Array:
        rows, count, table = batch.rows, len(batch), batch.table.id
        given = rows.column("source")
        columns = {field.name: given.field(index) for index, field in enumerate(given.type)}
        micros = rows.column("ts_us")
        columns |= {
            "ts_ms": indices(np.floor_divide(micros.to_numpy(zero_copy_only=False), 1000)),
            "snapshot": snapshot_of(self._block, rows.column("snapshot")),
            "sequence": self._sequence(columns, count),
            "ts_us": micros,
            "ts_ns": pc.multiply(micros, pa.scalar(1000, pa.int64())),
        }
        constant = {"version": __version__, "connector": self._block.connector, "name": self._server, **parts_of(table)}
        names = [field.name for field in self._block.members]
        members = [kept_repeat(constant[name], count) if name in constant else columns[name] for name in names]
        return pa.StructArray.from_arrays(members, names=names)

    def _sequence(self, columns: dict[str, pa.Array], count: int) -> pa.Array:
        if self._block.sequence is None:
            return pa.nulls(count, pa.string())
        # One join for all, where a column is all null or never: each costs about 40 ns a row.
        first, second = (_quoted(columns[name]) for name in self._block.sequence)
        return text_of(["[", *first, ",", *second, "]"], 0, count, "source.sequence")

    def _key(self, batch: ChangeBatch, layout: Envelope, news: Bools) -> Part | None:
        if layout.key is None:
            return None
        plain = batch.column(PLAIN_KEY)
        if plain is not None:
            return self._key_of(plain.flatten(), layout, len(batch))
        images = [batch.rows.column(name) for name in ("after", "before")]
        columns = []
        for name in batch.table.key:
            new, old = (image.field(image.type.get_field_index(name)) for image in images)
            at = np.arange(len(batch)) + np.where(news, 0, len(batch))
            columns.append(new if news.all() else pa.concat_arrays([new, old]).take(indices(at)))
        return self._key_of(columns, layout, len(batch))

    def _key_of(self, columns: Sequence[pa.Array], layout: Envelope, count: int) -> Part:
        assert layout.key is not None
        extra = [] if layout.key_extra is None else [repeat(layout.key_extra, count)]
        fields = zip(layout.key.fields, [*columns, *extra], strict=True)
        return struct(layout.key, [(field.name, Part(field.schema, values)) for field, values in fields], count)

    def _other_key(self, batch: ChangeBatch, layout: Envelope) -> tuple[Header, ...]:
        """Of a key change, the new key on its delete and the old one on its create."""
        other = batch.column("other_key")
        if other is None or layout.key is None or other.null_count == len(other):
            return ()
        columns = [other.field(other.type.get_field_index(name)) for name in batch.table.key]
        key = self._key_of(columns, layout, len(batch))
        delete = flags(pc.equal(batch.rows.column("op"), literal(DELETE)))
        present = flags(other.is_valid())
        sides = {"__debezium.newkey": present & delete, "__debezium.oldkey": present & ~delete}
        return tuple(Header(name, key, there) for name, there in sides.items() if there.any())

    def _control(self, batch: ControlBatch) -> Records:
        rows, count = batch.rows, len(batch)
        return Records(
            np.arange(count, dtype=np.int64) * 2,
            repeat(batch.topic, count),
            rows.column("partition").cast(pa.int32()),
            pa.nulls(count, _STAMP),
            Part(batch.key_schema, text=rows.column("key").cast(pa.string())),
            Part(batch.value_schema, text=rows.column("value").cast(pa.string())),
            self._context if batch.has_context else (),
        )

    def _envelope(self, table: TableSchema) -> Envelope:
        known = self._envelopes.get(table.id)
        if known is None or known[0] != table:
            known = self._envelopes[table.id] = (table, envelope(table, self._naming, self._block))
        return known[1]


def _quoted(numbers: pa.Array) -> list[str | pa.Array]:
    """Numbers as JSON texts, in parts."""
    if numbers.null_count == len(numbers):
        return ["null"]
    parts = ['"', pc.cast(numbers, pa.string()), '"']
    return [join(*parts).fill_null(literal("null"))] if numbers.null_count else parts
