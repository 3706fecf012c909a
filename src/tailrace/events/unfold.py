"""Converts change and control batches to Records: envelope, key and headers as columns instead of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import UNAVAILABLE_VALUE_PLACEHOLDER
from tailrace.events.envelope import Envelope
from tailrace.events.headers import context
from tailrace.events.offset_entries import offset_entries
from tailrace.events.parts import flat, text_of
from tailrace.events.payload import arrow_type, replaced, required
from tailrace.events.plan import CLOCKS, TIME, EventPlan, EventPlans, Origin, RecordMember, clock, times
from tailrace.events.records import Bools, Header, RecordPart, Records, struct
from tailrace.events.schema_change import SchemaChangeWriter
from tailrace.events.source import snapshot_of
from tailrace.events.unavailable import placeholders
from tailrace.model.arrow import flags, indices, join, kept_repeat, literal, repeat
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.cuts import pieces
from tailrace.model.schema import STRING
from tailrace.model.source import AFTER, SourceBlock


class Unfolder:
    """Makes Records of batches; keep one for a run, it remembers the tables' schemas."""

    def __init__(self, config: Config, source: SourceBlock, run_id: str) -> None:
        self._plans = EventPlans(config, source)
        self._block = source
        self._placeholder = config[UNAVAILABLE_VALUE_PLACEHOLDER]
        shared = context(config, source.connector, run_id)
        self._context = tuple(Header.of(name, STRING, text) for name, text in shared.items())
        self._schema_changes = SchemaChangeWriter(config, source)

    def unfold(self, batch: ChangeBatch | ControlBatch) -> Iterator[list[Records]]:
        """The batch's records, group by group, in pieces of bounded size."""
        control, changes = self._schema_changes.parted(batch)
        if control is not None:
            yield [self._control(control)]
        if changes is not None:
            plan = self._plans.of(changes.table)
            for piece in pieces(changes):
                yield self._records(piece, plan)

    def _records(self, batch: ChangeBatch, plan: EventPlan) -> list[Records]:
        rows, count = batch.rows, len(batch)
        key, keyed = _keys(rows, plan)
        records = Records(
            np.arange(count, dtype=np.int64) * 2,
            kept_repeat(plan.envelope.topic, count),
            pa.nulls(count, pa.int32()),
            times(rows),
            key=key,
            value=self._value(batch, plan),
            headers=(*_other_key(rows, plan), *self._context) if plan.has_headers else (),
            shares_headers=plan.has_tombstones,
            offset_entries=offset_entries(batch, self._block.offset),
        )
        groups = [records]
        if not keyed.all():
            with_key, without = records.split(keyed)
            groups = [with_key, without.with_(key=None)]
        deleted = plan.tombstones(rows)
        if deleted is not None:
            # A tombstone follows its delete: its order is the odd number in between.
            dead = records.take(np.flatnonzero(deleted))
            groups.append(dead.with_(order=dead.order + 1, value=None))
        return [group for group in groups if len(group)]

    def _value(self, batch: ChangeBatch, plan: EventPlan) -> RecordPart:
        nanos = time.time_ns()
        parts = [
            (each.field.name, RecordPart(each.field.schema, self._member(each, batch, plan, nanos)))
            for each in plan.members
        ]
        return struct(plan.envelope.value, parts, len(batch))

    def _member(self, member: RecordMember, batch: ChangeBatch, plan: EventPlan, nanos: int) -> pa.Array:
        """One member of the envelopes, which were built at one instant."""
        name = member.field.name
        if member.origin is Origin.IMAGE:
            return self._image(batch, member.column, plan.envelope)
        if member.origin is Origin.BLOCK:
            return self._source(batch)
        if member.origin is Origin.CLOCK:
            return pa.repeat(pa.scalar(nanos // CLOCKS[name], pa.int64()), len(batch))
        column = batch.column(name)
        return pa.nulls(len(batch), arrow_type(member.field.schema)) if column is None else column

    def _image(self, batch: ChangeBatch, name: str, layout: Envelope) -> pa.Array:
        """A row image as Connect holds it: zeros where an old image lacks a required column, placeholders in a new."""
        image = batch.rows.column(name)
        absent = image.is_null()
        if layout.row.type != "struct":
            return pc.if_else(absent, literal(None), image.field(0))
        table = batch.table
        columns = [image.field(place) for place in range(len(table.value_columns))]
        marks = batch.column("unchanged") if name == AFTER else None
        for place, unchanged, text in placeholders(table, marks, self._placeholder):
            columns[place] = replaced(columns[place], json.loads(text), table.value_columns[place].schema, unchanged)
        columns = [
            required(values, column.schema, absent) for values, column in zip(columns, table.value_columns, strict=True)
        ]
        parts = [
            (field.name, RecordPart(field.schema, values))
            for field, values in zip(layout.row.fields, columns, strict=True)
        ]
        return struct(layout.row, parts, len(batch), absent).values

    def _source(self, batch: ChangeBatch) -> pa.Array:
        plan, columns = self._plans.source, []
        texts = plan.texts(batch.table.id)
        for member in plan.members:
            name = member.field.name
            if member.origin is Origin.TEXT:
                columns.append(kept_repeat(texts[name], len(batch)))
            elif member.origin is Origin.CLOCK:
                columns.append(clock(batch.rows.column("ts_us"), name))
            elif member.origin is Origin.SNAPSHOT:
                columns.append(snapshot_of(self._block, batch.rows.column(name)))
            elif member.origin is Origin.SEQUENCE:
                columns.append(self._sequence(batch.rows.column("source")))
            else:
                columns.append(batch.rows.column("source").field(name))
        return pa.StructArray.from_arrays(columns, names=[member.field.name for member in plan.members])

    def _sequence(self, source: pa.StructArray) -> pa.Array:
        if self._block.sequence is None:
            return pa.nulls(len(source), pa.string())
        # One join for all, where a column is all null or never: each costs about 40 ns a row.
        first, second = (_quoted(source.field(name)) for name in self._block.sequence)
        return text_of(flat("[", first, ",", second, "]"), 0, len(source), "source.sequence")

    def _control(self, batch: ControlBatch) -> Records:
        rows, count = batch.rows, len(batch)
        return Records(
            np.arange(count, dtype=np.int64) * 2,
            repeat(batch.topic, count),
            rows.column("partition").cast(pa.int32()),
            pa.nulls(count, TIME),
            key=RecordPart(batch.key_schema, text=rows.column("key").cast(pa.string())),
            value=RecordPart(batch.value_schema, text=rows.column("value").cast(pa.string())),
            headers=self._context if batch.has_context else (),
        )


def _keys(rows: pa.RecordBatch, plan: EventPlan) -> tuple[RecordPart | None, Bools]:
    """The keys of rows, and which rows have one; no key where none has, or the table has no key."""
    sides = [rows.column(name) for name in plan.key_columns(rows)]
    valid = [flags(side.is_valid()) for side in sides]
    keyed = np.logical_or.reduce(valid)
    if plan.envelope.key is None or not keyed.any():
        return None, keyed
    # Of each row the first side that has it.
    values = [plan.key_values(side) for side in sides]
    if len(sides) == 1 or valid[0].all():
        return _key(values[0], plan, len(rows)), keyed
    at = indices(np.arange(len(rows)) + np.where(valid[0], 0, len(rows)))
    return _key([pa.concat_arrays(pair).take(at) for pair in zip(*values, strict=True)], plan, len(rows)), keyed


def _key(values: Sequence[pa.Array], plan: EventPlan, count: int) -> RecordPart:
    assert plan.envelope.key is not None
    fields = zip(plan.key, values, strict=True)
    return struct(
        plan.envelope.key, [(field.name, RecordPart(field.schema, each)) for (field, _), each in fields], count
    )


def _other_key(rows: pa.RecordBatch, plan: EventPlan) -> tuple[Header, ...]:
    other = plan.other_key(rows)
    if other is None:
        return ()
    key = _key(plan.key_values(other.keys), plan, len(rows))
    return tuple(Header(name, key, has_it) for name, has_it in other.rows.items())


def _quoted(numbers: pa.Array) -> list[str | pa.Array]:
    """Numbers as JSON texts, in parts."""
    if numbers.null_count == len(numbers):
        return ["null"]
    parts = ['"', pc.cast(numbers, pa.string()), '"']
    return [join(*parts).fill_null(literal("null"))] if numbers.null_count else parts
