"""Formats header values as Kafka Connect's converters do: JSON, simple or string."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.converter_names import JSON, STRING
from tailrace.events.converter import Converter
from tailrace.events.parts import text_of
from tailrace.events.payload import filled
from tailrace.events.value_texts import DECIMAL, java_texts, value_texts
from tailrace.model.arrow import bracketed, entries_of, join, null_where, repeat
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.json import encode


def header_texts(values: pa.Array, schema: ConnectSchema, converter: Converter, where: str) -> pa.Array:
    """The text of each value. A null has none but as JSON. `where` names the values in errors."""
    if pa.types.is_null(values.type):  # a null without a schema
        return pa.nulls(len(values), pa.string())
    if converter.kind == JSON:
        left, right = converter.wrap(schema)
        return text_of([left, encode(values, schema, converter.style), right], 0, len(values), where)
    if converter.kind == STRING:
        return _of_java(values, schema)
    return _of_connect(values, schema, converter.lacks_dates)


def _of_connect(values: pa.Array, schema: ConnectSchema, lacks_dates: bool) -> pa.Array:
    """As Values.convertToString of Kafka Connect.

    Like JSON, but numbers, NaN and times have no quotes, nor has a text that stands alone.
    """
    if schema.type == "struct":
        parts: list[str | pa.Array] = ["{"]
        for place, field in enumerate(schema.fields):
            inner = filled(pc.struct_field(values, place), field.schema)
            parts += [f"{',' if place else ''}{_quoted(field.name)}:", _inside(inner, field.schema, lacks_dates)]
        text = join(*parts, "}") if schema.fields else repeat("{}", len(values))
    elif schema.items is not None:
        text = bracketed(values, _inside(values.flatten(), schema.items, lacks_dates), "[", "]")
    elif schema.keys is not None and schema.values is not None:
        lists, keys, items = entries_of(values)
        pairs = join(_inside(keys, schema.keys, lacks_dates), ":", _inside(items, schema.values, lacks_dates))
        text = bracketed(lists, pairs, "{", "}")
    else:
        text = value_texts(values, schema, lacks_dates)
    return null_where(values, text)


def _inside(values: pa.Array, schema: ConnectSchema, lacks_dates: bool) -> pa.Array:
    """The texts of values within others: there texts and bytes have quotes, and null has a text."""
    text = _of_connect(values, schema, lacks_dates)
    if schema.type == "string" or (schema.type == "bytes" and schema.name != DECIMAL):
        sound = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
        text = join('"', sound, '"')
    return text.fill_null("null")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _of_java(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """As Java's toString: `Struct{id=1,name=a}` without fields that are null, `[a, b]`, `{a=1, b=2}`."""
    if schema.type == "struct":
        fields = [
            join(f",{field.name}=", _of_java(pc.struct_field(values, place), field.schema))
            for place, field in enumerate(schema.fields)
        ]
        # Nulls are replaced, not skipped: skipping leaves out a row whose fields are all null.
        inner = pc.binary_join_element_wise(repeat("", len(values)), *fields, "", null_handling="replace")
        text = join("Struct{", pc.utf8_slice_codeunits(inner, 1), "}")
    elif schema.items is not None:
        text = bracketed(values, _of_java(values.flatten(), schema.items).fill_null("null"), "[", "]", ", ")
    elif schema.keys is not None and schema.values is not None:
        lists, keys, items = entries_of(values)
        pairs = join(_of_java(keys, schema.keys), "=", _of_java(items, schema.values).fill_null("null"))
        text = bracketed(lists, pairs, "{", "}", ", ")
    else:
        text = java_texts(values, schema)
    return null_where(values, text)
