"""Encodes row images and keys as JSON fragments, one for each column, to be joined by the caller."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import UNAVAILABLE_VALUE_PLACEHOLDER
from tailrace.events.converter import Converter
from tailrace.events.envelope import Envelope
from tailrace.events.parts import Parts, flat, struct_parts, text_of
from tailrace.events.plan import EventPlan
from tailrace.events.unavailable import placeholders
from tailrace.model.arrow import literal
from tailrace.model.table import TableSchema
from tailrace.model.text.json import Decimals, Fragment, Style, dump, fragment


class ImageWriter:
    """Writes images and keys of any table under one configuration; `decimals` replaces the converters' formats."""

    def __init__(self, config: Config, decimals: Decimals | None = None) -> None:
        styles = [Converter.of(config, part).style for part in ("key", "value", "header")]
        if decimals is not None:
            styles = [replace(style, decimals=decimals) for style in styles]
        self._keys, self._values, self._headers = styles
        self._placeholder = config[UNAVAILABLE_VALUE_PLACEHOLDER]

    def before(self, rows: pa.RecordBatch, table: TableSchema) -> list[Fragment]:
        """The columns of the old images."""
        return self._image(rows.column("before"), table)

    def _image(self, struct: pa.StructArray, table: TableSchema) -> list[Fragment]:
        columns = enumerate(table.value_columns)
        return [fragment(struct.field(place), column.schema, self._values) for place, column in columns]

    def after(self, rows: pa.RecordBatch, table: TableSchema) -> list[Fragment]:
        """The columns of the new images, with the placeholder for large values that the log did not repeat."""
        image, at = self._image(rows.column("after"), table), rows.schema.get_field_index("unchanged")
        marks = None if at < 0 else rows.column(at)
        for place, unchanged, text in placeholders(table, marks, self._placeholder):
            values = text_of(flat(image[place]), 0, len(rows), f"table {table.id}")
            image[place] = Fragment("", pc.if_else(unchanged, literal(text), values))
        return image

    def key(self, struct: pa.StructArray, plan: EventPlan, image: list[Fragment] | None) -> Parts | None:
        """The key from the columns of `struct`, None without key columns.

        The texts of `image`, where one is given, serve again unless keys are written otherwise than values.
        """
        return self._key(struct, plan, image, self._keys)

    def header_key(self, struct: pa.StructArray, plan: EventPlan) -> Parts | None:
        """The key as headers hold it."""
        return self._key(struct, plan, None, self._headers)

    def _key(self, struct: pa.StructArray, plan: EventPlan, image: list[Fragment] | None, style: Style) -> Parts | None:
        if plan.envelope.key is None:
            return None
        values = []
        for _, name in plan.key:
            if name is None:
                values.append(Fragment(dump(plan.envelope.key_extra), None))
                continue
            place = struct.type.get_field_index(name)
            column = struct.field(place)
            alike = style == self._values or (column.null_count == 0 and style.decimals == self._values.decimals)
            if image is not None and place < len(image) and alike:
                values.append(image[place])
            else:
                values.append(fragment(column, plan.table.column(name).schema, style))
        return struct_parts([field.name for field, _ in plan.key], values)


def image_parts(envelope: Envelope, image: list[Fragment]) -> Parts:
    """An image as an envelope holds it: the columns as a struct, or the one column of a document."""
    if envelope.row.type != "struct":
        return flat(image[0])
    return struct_parts([field.name for field in envelope.row.fields], image)
