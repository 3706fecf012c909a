"""Types of extensions: hstore and pgvector's three, from text to maps, lists and structs."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DecodeError
from tailrace.javalike.hashes import map_order, number_map_order
from tailrace.model.arrow import indices
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.text.json import dump

HSTORE_MAP = ConnectSchema("map", keys=ConnectSchema("string"), values=ConnectSchema("string", optional=True))
HSTORE_TYPE = pa.map_(pa.string(), pa.string())

VECTOR = ConnectSchema("array", name="io.debezium.data.DoubleVector", version=1, items=ConnectSchema("double"))
HALF_VECTOR = ConnectSchema("array", name="io.debezium.data.FloatVector", version=1, items=ConnectSchema("float"))
_ENTRIES = ConnectSchema("map", keys=ConnectSchema("int16"), values=ConnectSchema("double"))
SPARSE_VECTOR = ConnectSchema(
    "struct",
    name="io.debezium.data.SparseDoubleVector",
    version=1,
    doc="Sparse double vector",
    fields=(Field("dimensions", ConnectSchema("int16")), Field("vector", _ENTRIES)),
)
SPARSE_TYPE = pa.struct([("dimensions", pa.int16()), ("vector", pa.map_(pa.int16(), pa.float64()))])

_QUOTED = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_PAIR = re.compile(rf"{_QUOTED}=>(?:NULL|{_QUOTED})(?:, |$)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def hstore_maps(text: pa.Array) -> pa.Array:
    """HSTORE as maps. Taken value by value: the form nests quotes, and Debezium's order is that of a Java HashMap."""
    return pa.array([None if value is None else list(_pairs(value).items()) for value in text.to_pylist()], HSTORE_TYPE)


def hstore_json(text: pa.Array) -> pa.Array:
    """HSTORE as JSON objects in text, without spaces."""
    return pa.array([None if value is None else dump(_pairs(value)) for value in text.to_pylist()], pa.string())


def _pairs(text: str) -> dict[str, str | None]:
    """Keys and values in the order in which a Java HashMap lists them, which is how Debezium prints them."""
    pairs: dict[str, str | None] = {}
    place = 0
    while place < len(text):
        pair = _PAIR.match(text, place)
        if pair is None:
            raise DecodeError("an hstore value is not what the server prints")
        pairs[_plain(pair[1])] = None if pair[2] is None else _plain(pair[2])
        place = pair.end()
    return {key: pairs[key] for key in map_order(list(pairs))}


def _plain(quoted: str) -> str:
    return _ESCAPED.sub(r"\1", quoted) if "\\" in quoted else quoted


def vectors(text: pa.Array, item: pa.DataType) -> pa.Array:
    """`[1,2.5]` as lists of numbers."""
    parts = pc.split_pattern(pc.utf8_trim(text, "[]"), ",")
    return parts.cast(pa.list_(item))


def sparse_vectors(text: pa.Array) -> pa.StructArray:
    """`{1:1.5,3:2}/5` as dimensions and a map from index (from 1) to number, in the order of a Java HashMap."""
    halves = pc.split_pattern(pc.utf8_ltrim(text, "{"), "}/")
    if not pc.all(pc.equal(pc.list_value_length(halves), 2), min_count=0).as_py():
        raise DecodeError("a sparse vector has no dimensions")
    dimensions = pc.cast(pc.list_element(halves, 1), pa.int16())
    body = pc.list_element(halves, 0)
    blank = pc.equal(body, "").fill_null(True)
    entries = pc.split_pattern(pc.if_else(blank, pa.scalar(None, pa.string()), body), ",")
    pairs = pc.split_pattern(entries.flatten(), ":")
    lengths = pc.list_value_length(entries).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    keys, values = (
        pc.cast(pc.list_element(pairs, place), kind) for place, kind in ((0, pa.int16()), (1, pa.float64()))
    )
    order = indices(number_map_order(keys.to_numpy(zero_copy_only=False), lengths))
    maps = pa.MapArray.from_arrays(offsets, keys.take(order), values.take(order))
    return pa.StructArray.from_arrays([dimensions, maps], fields=list(SPARSE_TYPE), mask=text.is_null())
