"""Rows of the `event` shape: changes of all tables in one layout, images as JSON, for SQL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.spark import EVENT_DECIMAL_FORMAT
from tailrace.events.envelope import Envelope
from tailrace.events.images import ImageWriter, image_parts
from tailrace.events.parts import text_of
from tailrace.events.plan import TIME, EventPlan, EventPlans, times
from tailrace.model.arrow import join, literal, repeat
from tailrace.model.change import TRANSACTION_TYPE, ChangeBatch
from tailrace.model.cuts import pieces
from tailrace.model.source import AFTER, BEFORE, SourceBlock
from tailrace.model.table import TableId, TableSchema
from tailrace.model.text.json import Decimals, Fragment

_ARROW = {"int64": pa.int64(), "int32": pa.int32(), "string": pa.string(), "boolean": pa.bool_()}
# The two hexadecimal digits of each byte.
_DIGITS = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), np.uint16)


def event_schema(source: SourceBlock) -> pa.Schema:
    """The columns of the event shape for a connector."""
    block = [("connector", pa.string()), ("name", pa.string()), ("ts_us", pa.int64())]
    block += [(name, pa.string()) for name in ("snapshot", "db")]
    block += [(each.name, _ARROW[each.schema.type]) for each in source.fields]
    columns = [(name, pa.string()) for name in ("topic", "op", "key", "before", "after")]
    return pa.schema(
        [
            *columns,
            ("source", pa.struct(block)),
            ("transaction", TRANSACTION_TYPE),
            ("position", pa.string()),
            ("ts", TIME),
        ]
    )


class EventShaper:
    """Turns change batches into rows of `event_schema`; keep one for a run, it remembers the tables' layouts.

    Keys and images are bare JSON payloads, null where there is none. `position` is a text that sorts as the
    log does (`SourceBlock.position`), `ts` the change's time at the source.
    """

    def __init__(self, config: Config, source: SourceBlock) -> None:
        self._plans = EventPlans(config, source)
        self._images = ImageWriter(config, Decimals(config[EVENT_DECIMAL_FORMAT]))
        self._source = source
        self.schema = event_schema(source)

    def encode(self, batch: ChangeBatch) -> Iterator[pa.RecordBatch]:
        """The batch's rows in order, in pieces of bounded size."""
        for piece in pieces(batch):
            yield self._rows(piece, self._plans.of(batch.table))

    def _rows(self, batch: ChangeBatch, plan: EventPlan) -> pa.RecordBatch:
        rows, table, layout = batch.rows, batch.table, plan.envelope
        images = {BEFORE: self._images.before(rows, table), AFTER: self._images.after(rows, table)}
        keys = [self._key(rows.column(name), images.get(name), plan) for name in plan.key_columns(rows)]
        transaction = batch.column("transaction")
        columns = [
            repeat(layout.topic, len(batch)),
            rows.column("op"),
            pc.coalesce(*keys),
            *(self._image(rows.column(name), image, table, layout) for name, image in images.items()),
            self._source_block(rows, table.id),
            pa.nulls(len(batch), TRANSACTION_TYPE) if transaction is None else transaction,
            self._position(rows),
            times(rows),
        ]
        return pa.record_batch(columns, schema=self.schema)

    def _image(self, struct: pa.Array, image: list[Fragment], table: TableSchema, layout: Envelope) -> pa.Array:
        if struct.null_count == len(struct):
            return pa.nulls(len(struct), pa.string())
        text = text_of(image_parts(layout, image), 0, len(struct), str(table.id))
        return pc.if_else(struct.is_valid(), text, literal(None))

    def _key(self, struct: pa.Array, image: list[Fragment] | None, plan: EventPlan) -> pa.Array:
        parts = self._images.key(struct, plan, image)
        if parts is None or struct.null_count == len(struct):
            return pa.nulls(len(struct), pa.string())
        return pc.if_else(struct.is_valid(), text_of(parts, 0, len(struct), str(plan.table.id)), literal(None))

    def _position(self, rows: pa.RecordBatch) -> pa.Array:
        """The texts of the position's columns joined; a null ends the text, or is the whole of it."""
        source = rows.column("source")
        parts = [sortable(source.field(source.type.get_field_index(name))) for name in self._source.position]
        text = parts[0] if parts else pa.nulls(len(rows), pa.string())
        for part in parts[1:]:
            text = pc.coalesce(join(text, "/", part), text)
        return text

    def _source_block(self, rows: pa.RecordBatch, table: TableId) -> pa.Array:
        source, count = rows.column("source"), len(rows)
        texts = self._plans.source.texts(table)
        columns = []
        for each in self.schema.field("source").type:
            if each.name in texts:
                columns.append(repeat(texts[each.name], count))
            elif each.name == "ts_us":
                columns.append(rows.column("ts_us"))
            elif each.name == "snapshot":
                columns.append(rows.column("snapshot").fill_null(literal("false")))
            else:
                columns.append(source.field(source.type.get_field_index(each.name)).cast(each.type))
        return pa.StructArray.from_arrays(columns, fields=list(self.schema.field("source").type))


def sortable(values: pa.Array) -> pa.Array:
    """Texts in the order of the values: numbers, none of them negative, as 16 hexadecimal digits."""
    if not pa.types.is_integer(values.type):
        return values
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    digits = _DIGITS[numbers.astype(">i8").view(np.uint8)].tobytes()
    offsets = np.arange(0, 16 * len(values) + 1, 16, dtype=np.int32)
    text = pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(digits))
    return pc.if_else(values.is_valid(), text, literal(None)) if values.null_count else text
