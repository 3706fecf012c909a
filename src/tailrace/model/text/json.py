"""Encodes Arrow columns as JSON text, byte for byte as Kafka Connect's JSON converter does."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from tailrace.errors import DecodeError
from tailrace.model.arrow import bracketed, entries_of, is_constant, join, null_where, repeat
from tailrace.model.native import plain_decimals
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.text.binary import base64, decimal_of, unscaled_base64
from tailrace.model.text.numbers import decimal_text, float_text, java_float, scale_of
from tailrace.model.text.strings import escape, quote

_TEXTS = {
    "io.debezium.time.ZonedTimestamp": "1970-01-01T00:00:00Z",
    "io.debezium.time.ZonedTime": "00:00:00Z",
    "io.debezium.time.IsoDate": "1970-01-01Z",
    "io.debezium.time.IsoTime": "00:00:00Z",
    "io.debezium.time.IsoTimestamp": "1970-01-01T00:00:00Z",
    "io.debezium.time.Interval": "P0Y0M0DT0H0M0S",
}
_POINT = "io.debezium.data.geometry.Point"
_ORIGIN = '{"x":0.0,"y":0.0,"wkb":"AQEAAAAAAAAAAAAAAAAAAAAAAAAA","srid":null}'
_GEOMETRIES = ("io.debezium.data.geometry.Geometry", "io.debezium.data.geometry.Geography")
_NO_GEOMETRY = '{"wkb":"AQcAAAAAAAAA","srid":null}'
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE = "io.debezium.data.VariableScaleDecimal"


@dataclass(frozen=True)
class Fragment:
    """A column as JSON: each row is `left` + its text + `right`; `text` is None where `left` alone is every row."""

    left: str
    text: pa.Array | None
    right: str = ""


class Decimals(Enum):
    """How decimals are written.

    Connect's formats write the unscaled value in base64, or a number as Java's BigDecimal prints itself; both leave a
    VariableScaleDecimal a struct. PLAIN and TEXT write every decimal without an exponent, as a number or a string.
    """

    BASE64 = "base64"
    NUMERIC = "numeric"
    PLAIN = "number"
    TEXT = "text"

    def applies(self, schema: ConnectSchema) -> bool:
        """Whether a column of this schema is written in this way, and not by its Arrow type."""
        if self is Decimals.BASE64:
            return False
        return schema.name == _DECIMAL or (schema.name == _VARIABLE and self is not Decimals.NUMERIC)


class _Digits(str):
    """A number's text, which is written without quotes."""


@dataclass(frozen=True, slots=True)
class Style:
    """The converter's settings for values: `defaults` (replace.null.with.default) writes an optional null as the
    schema's default; `decimals` is `decimal.format`. With `entries` maps whose keys may be no texts are lists of
    objects with key and value."""

    defaults: bool = True
    decimals: Decimals = Decimals.BASE64
    entries: bool = False


PLAIN = Style()


def encode(values: pa.Array, schema: ConnectSchema, style: Style = PLAIN) -> pa.Array:
    """A column as an array of JSON texts, without nulls."""
    part = fragment(values, schema, style)
    if part.text is None:
        return repeat(part.left, len(values))
    return join(part.left, part.text, part.right) if part.left else part.text


def fragment(values: pa.Array, schema: ConnectSchema, style: Style = PLAIN) -> Fragment:
    """A column as JSON with what is common to its rows kept apart. Raises DecodeError for a type without JSON form."""
    if values.null_count == len(values):
        return Fragment(null_text(schema, style), None)
    if pt.is_string(values.type) and values.null_count == 0 and is_constant(values):
        return Fragment(quote(values[0].as_py()), None)
    is_decimal = style.decimals.applies(schema)
    text = _decimals(values, schema, style) if is_decimal else _writer(values.type)(values, schema, style)
    quoted = style.decimals is Decimals.TEXT if is_decimal else _is_text(values.type)
    if values.null_count == 0:
        return Fragment('"', text, '"') if quoted else Fragment("", text)
    if quoted:
        text = join('"', text, '"')
    return Fragment("", text.fill_null(pa.scalar(null_text(schema, style), text.type)))


def null_text(schema: ConnectSchema, style: Style = PLAIN) -> str:
    """The text for null: the default, otherwise a required field's zero value, otherwise `null`."""
    if schema.default is not None and (style.defaults or not schema.optional):
        return dump(_shown(schema, schema.default, style))
    if schema.optional:
        return "null"
    if not style.decimals.applies(schema):
        return _fallback(schema)
    return dump(_shown(schema, "AA==" if schema.name == _DECIMAL else {"scale": 0, "value": "AA=="}, style))


def schema_text(schema: ConnectSchema, style: Style = PLAIN, text: Callable[[str], str] = quote) -> str:
    """A schema as the converter prints it; `text` writes texts."""
    return dump(_with_shown(schema, style).to_json(), text)


def _with_shown(schema: ConnectSchema, style: Style) -> ConnectSchema:
    """The schema with defaults of decimals as values are written."""
    fields = tuple(Field(field.name, _with_shown(field.schema, style)) for field in schema.fields)
    return replace(schema, fields=fields, default=_shown(schema, schema.default, style))


def _shown(schema: ConnectSchema, default: Any, style: Style) -> Any:
    """A default as values are written; decimals come as the unscaled value in base64."""
    if default is None or not style.decimals.applies(schema):
        return default
    scale, raw = (default["scale"], default["value"]) if schema.name == _VARIABLE else (scale_of(schema), default)
    number = decimal_of(binascii.a2b_base64(raw), scale)
    if style.decimals is Decimals.NUMERIC:
        return number
    return format(number, "f") if style.decimals is Decimals.TEXT else _Digits(format(number, "f"))


def _decimals(values: pa.Array, schema: ConnectSchema, style: Style) -> pa.Array:
    """Decimals as numbers."""
    return decimal_text(values, schema) if style.decimals is Decimals.NUMERIC else plain_decimals(values, schema)


def _fallback(schema: ConnectSchema) -> str:
    if schema.type == "string":
        return quote(_TEXTS.get(schema.name or "", schema.empty or ""))
    if schema.type == "bytes":
        return '"AA=="' if schema.name == _DECIMAL else '""'
    if schema.type == "struct":
        if schema.empty is not None:
            return schema.empty
        if schema.name == _POINT:
            return _ORIGIN
        if schema.name in _GEOMETRIES:
            return _NO_GEOMETRY
        if schema.name == "io.debezium.data.VariableScaleDecimal":
            return '{"scale":0,"value":"AA=="}'
        return "{" + ",".join(f"{quote(f.name)}:{null_text(f.schema)}" for f in schema.fields) + "}"
    if schema.type == "map":
        return "{}" if schema.keys is not None and schema.keys.type == "string" else "[]"
    return {"boolean": "false", "float": "0.0", "double": "0.0", "array": "[]"}.get(schema.type, "0")


def dump(node: Any, text: Callable[[str], str] = quote) -> str:
    """A constant (a schema, a default) as the converter prints it; `text` writes texts."""
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, _Digits):
        return str(node)
    if isinstance(node, str):
        return text(node)
    if isinstance(node, float | np.floating):
        return java_float(node)
    if isinstance(node, Decimal):
        return str(node)  # as Java's BigDecimal prints itself
    if isinstance(node, dict):
        return "{" + ",".join(f"{text(name)}:{dump(value, text)}" for name, value in node.items()) + "}"
    if isinstance(node, list | tuple):
        return "[" + ",".join(dump(value, text) for value in node) + "]"
    return str(node)


Writer = Callable[[pa.Array, ConnectSchema, Style], pa.Array]


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or pt.is_decimal(kind)
    )


def _writer(kind: pa.DataType) -> Writer:
    for test, writer in _WRITERS:
        if test(kind):
            return writer
    raise DecodeError(f"a column of Arrow type {kind} has no JSON form")


def _plain(values: pa.Array, schema: ConnectSchema, style: Style) -> pa.Array:
    return pc.cast(values, pa.string())


def _struct(values: pa.Array, schema: ConnectSchema, style: Style) -> pa.Array:
    parts: list[str | pa.Array] = []
    for index, field in enumerate(schema.fields):
        part = fragment(values.field(index), field.schema, style)
        parts.append(f"{',' if index else '{'}{quote(field.name)}:{part.left}")
        if part.text is not None:
            parts += [part.text, part.right]
    parts.append("}" if schema.fields else "{}")
    if all(isinstance(part, str) for part in parts):
        return null_where(values, repeat("".join(map(str, parts)), len(values)))
    return null_where(values, join(*parts))


def _list(values: pa.Array, schema: ConnectSchema, style: Style) -> pa.Array:
    if schema.items is None:
        raise DecodeError(f"the schema of an array does not declare its items: {schema}")
    return bracketed(values, encode(values.flatten(), schema.items, style), "[", "]")


def _map(values: pa.Array, schema: ConnectSchema, style: Style) -> pa.Array:
    if schema.keys is None or schema.values is None:
        raise DecodeError(f"the schema of a map does not declare its keys and values: {schema}")
    lists, keys, items = entries_of(values)
    key, value = encode(keys, schema.keys), encode(items, schema.values, style)
    if schema.keys.type == "string" and not (style.entries and schema.keys.optional):
        return bracketed(lists, join(key, ":", value), "{", "}")
    if style.entries:
        return bracketed(lists, join('{"key":', key, ',"value":', value, "}"), "[", "]")
    return bracketed(lists, join("[", key, ",", value, "]"), "[", "]")


_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Writer], ...] = (
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), lambda values, _schema, _style: escape(values)),
    (lambda kind: pt.is_integer(kind) or pt.is_boolean(kind), _plain),
    (pt.is_floating, lambda values, _schema, _style: float_text(values)),
    (pt.is_decimal, lambda values, _schema, _style: unscaled_base64(values)),
    (
        lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind),
        lambda values, _schema, _style: base64(values),
    ),
    (pt.is_struct, _struct),
    (lambda kind: pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind), _list),
    (pt.is_map, _map),
)
