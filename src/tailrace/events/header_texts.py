"""Formats header values as Kafka Connect's converters do: JSON, simple or string."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.converter import JSON, STRING, Converter
from tailrace.events.encode.arrow import join, repeat
from tailrace.events.encode.json import encode
from tailrace.events.parts import text_of
from tailrace.model.schema import ConnectSchema


def header_texts(values: pa.Array, schema: ConnectSchema, converter: Converter, where: str) -> pa.Array:
    """The text of each value. A null has none but as JSON. `where` names the values in errors."""
    if converter.kind == JSON:
        left, right = converter.wrap(schema)
        return text_of([left, encode(values, schema, converter.style), right], 0, len(values), where)
    if converter.kind == STRING:
        return _java(values, schema, converter)
    return _bare(values, schema, converter)


def _bare(values: pa.Array, schema: ConnectSchema, converter: Converter) -> pa.Array:
    """As Values.convertToString of Kafka Connect: JSON without quotes around a text, and without a schema."""
    if schema.type == "string":
        return values.cast(pa.string())
    text = encode(values, schema, converter.style)
    if schema.type == "bytes":
        # Binary values in base64; numbers have no quotes.
        quoted = pc.starts_with(text, '"')
        text = pc.if_else(quoted, pc.utf8_slice_codeunits(text, 1, -1), text)
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _java(values: pa.Array, schema: ConnectSchema, converter: Converter) -> pa.Array:
    """As Java's toString: `Struct{id=1,name=a}` without fields that are null, `[a, b]`; binary values in base64."""
    if schema.type == "struct":
        fields = [
            join(f",{field.name}=", _java(pc.struct_field(values, place), field.schema, converter))
            for place, field in enumerate(schema.fields)
        ]
        # Nulls are replaced, not skipped: skipping leaves out a row whose fields are all null.
        inner = pc.binary_join_element_wise(repeat("", len(values)), *fields, "", null_handling="replace")
        text = join("Struct{", pc.utf8_slice_codeunits(inner, 1), "}")
    elif schema.type == "array" and schema.items is not None:
        items = _java(values.flatten(), schema.items, converter).fill_null("null")
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(_lengths(values)).cast(pa.int32())])
        text = join("[", pc.binary_join(pa.ListArray.from_arrays(offsets, items), ", "), "]")
    else:
        return _bare(values, schema, converter)
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _lengths(values: pa.Array) -> pa.Array:
    return pc.list_value_length(values).fill_null(0)
