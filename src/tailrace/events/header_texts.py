"""Formats header values as Kafka Connect's converters do: JSON, simple or string."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.converter import JSON, STRING, Converter
from tailrace.events.encode.arrow import join, repeat
from tailrace.events.encode.json import encode
from tailrace.events.parts import text_of
from tailrace.model.schema import ConnectSchema

_LOGICAL = "org.apache.kafka.connect.data."
# How many milliseconds a unit of them has.
_TIMES = {_LOGICAL + "Date": 86_400_000, _LOGICAL + "Time": 1, _LOGICAL + "Timestamp": 1}


def header_texts(values: pa.Array, schema: ConnectSchema, converter: Converter, where: str) -> pa.Array:
    """The text of each value. A null has none but as JSON. `where` names the values in errors."""
    if pa.types.is_null(values.type):  # a null without a schema
        return pa.nulls(len(values), pa.string())
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
    if schema.name in _TIMES:
        return _times(values, schema.name)
    text = encode(values, schema, converter.style)
    if schema.type == "bytes":
        # Binary values in base64; numbers have no quotes.
        quoted = pc.starts_with(text, '"')
        text = pc.if_else(quoted, pc.utf8_slice_codeunits(text, 1, -1), text)
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _times(values: pa.Array, name: str) -> pa.Array:
    """Dates and times in ISO 8601: a date alone where the time is midnight, a time alone for Connect's Time."""
    millis = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    moments = (millis * _TIMES[name]).astype("datetime64[ms]")
    texts = [f"{text}Z" for text in np.datetime_as_string(moments).tolist()]
    if name.endswith(".Time"):
        texts = [text.partition("T")[2] for text in texts]
    else:
        texts = [text.removesuffix("T00:00:00.000Z") for text in texts]
    return pc.if_else(values.is_valid(), pa.array(texts, pa.string()), pa.scalar(None, pa.string()))


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
