"""Connect values outside a table's columns: Arrow type of a schema, values from JSON, defaults instead of nulls."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from decimal import MAX_PREC, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from tailrace.errors import DecodeError
from tailrace.model.arrow import flags, indices
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.json import null_text

_EXACT = Context(prec=MAX_PREC)
_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


def arrow_type(schema: ConnectSchema) -> pa.DataType:
    """The Arrow type values of a schema are held in where no column of a table says otherwise."""
    if schema.type in _PRIMITIVES:
        return _PRIMITIVES[schema.type]
    if schema.type == "struct":
        return pa.struct([pa.field(field.name, arrow_type(field.schema)) for field in schema.fields])
    if schema.type == "array" and schema.items is not None:
        return pa.list_(arrow_type(schema.items))
    if schema.type == "map" and schema.keys is not None and schema.values is not None:
        return pa.map_(arrow_type(schema.keys), arrow_type(schema.values))
    raise DecodeError(f"a schema of type {schema.type} does not declare its values")


def from_json(node: Any, schema: ConnectSchema) -> Any:
    """A payload as the JSON converter writes it, as the Python value Arrow takes: bytes decoded, maps as pairs."""
    if node is None:
        return None
    if schema.type == "bytes":
        return base64.b64decode(node)
    if schema.type == "struct":
        return {field.name: from_json(node.get(field.name), field.schema) for field in schema.fields}
    if schema.type == "array" and schema.items is not None:
        return [from_json(item, schema.items) for item in node]
    if schema.type == "map" and schema.keys is not None and schema.values is not None:
        pairs = node.items() if isinstance(node, dict) else node
        return [(from_json(key, schema.keys), from_json(value, schema.values)) for key, value in pairs]
    return float(node) if schema.type in ("float", "double") else node


def parse(texts: pa.Array, schema: ConnectSchema) -> pa.Array:
    """A column of payloads in JSON as values, one by one: for the few records of control topics."""
    nodes = [None if text is None else json.loads(text) for text in texts.to_pylist()]
    return array([from_json(node, schema) for node in nodes], schema)


def array(values: Sequence[Any], schema: ConnectSchema) -> pa.Array:
    """Python values as a column of the schema's type."""
    return pa.array(values, arrow_type(schema))


def replaced(values: pa.Array, node: Any, schema: ConnectSchema, places: pa.Array) -> pa.Array:
    """The column with a JSON-ready value at the places where the boolean column is true."""
    value = from_json(node, schema)
    if pt.is_decimal(values.type) and isinstance(value, bytes):
        value = _EXACT.scaleb(Decimal(int.from_bytes(value, "big", signed=True)), -values.type.scale)
    pool = pa.concat_arrays([values, pa.array([value], values.type)])
    return pool.take(indices(np.where(flags(places), len(values), np.arange(len(values)))))


def filled(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """The column with the schema's default in place of nulls, as Connect's `Struct.get` reads a field."""
    if schema.default is None or values.null_count == 0:
        return values
    return replaced(values, schema.default, schema, values.is_null())


def required(values: pa.Array, schema: ConnectSchema, absent: pa.Array | None = None) -> pa.Array:
    """The column of a required field with its default, else its type's zero, in place of nulls.

    So the reference fills what an old row image lacks. `absent` marks rows without an image: they stay null.
    """
    if schema.optional or values.null_count == (0 if absent is None else absent.true_count):
        return values
    places = flags(values.is_null())
    if absent is not None:
        places = places & ~flags(absent)
    return replaced(values, json.loads(null_text(schema)), schema, pa.array(places, pa.bool_()))
