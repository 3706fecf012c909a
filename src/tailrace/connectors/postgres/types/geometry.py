"""POINT and PostGIS: from text to the structs of `io.debezium.data.geometry`."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.postgres.types.numbers import hex_bytes
from tailrace.errors import DecodeError
from tailrace.model.schema import ConnectSchema, Field

_NAMES = "io.debezium.data.geometry."
_WKB = Field("wkb", ConnectSchema("bytes"))
_SRID = Field("srid", ConnectSchema("int32", optional=True))

POINT = ConnectSchema(
    "struct",
    name=_NAMES + "Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(
        Field("x", ConnectSchema("double")),
        Field("y", ConnectSchema("double")),
        Field("wkb", ConnectSchema("bytes", optional=True)),
        _SRID,
    ),
)
POINT_TYPE = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("wkb", pa.binary()), ("srid", pa.int32())])
GEOMETRY = ConnectSchema("struct", name=_NAMES + "Geometry", version=1, doc="Geometry", fields=(_WKB, _SRID))
GEOGRAPHY = ConnectSchema("struct", name=_NAMES + "Geography", version=1, doc="Geography", fields=(_WKB, _SRID))
GEOMETRY_TYPE = pa.struct([("wkb", pa.binary()), ("srid", pa.int32())])

_SRID_FLAG = 0x20000000


def points(text: pa.Array) -> pa.StructArray:
    """`(1.5,-2)` as x, y and well-known binary."""
    parts = pc.split_pattern(pc.utf8_trim(text, "()"), ",")
    if not pc.all(pc.equal(pc.list_value_length(parts), 2), min_count=0).as_py():
        raise DecodeError("a point does not have two coordinates")
    x, y = (pc.cast(pc.list_element(parts, place), pa.float64()) for place in (0, 1))
    wkb = np.empty(len(text), np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")]))
    wkb["order"], wkb["kind"] = 1, 1
    wkb["x"], wkb["y"] = (axis.fill_null(0).to_numpy(zero_copy_only=False) for axis in (x, y))
    fixed = pa.Array.from_buffers(pa.binary(21), len(text), [None, pa.py_buffer(wkb.tobytes())]).cast(pa.binary())
    arrays = [x, y, fixed, pa.nulls(len(text), pa.int32())]
    return pa.StructArray.from_arrays(arrays, fields=list(POINT_TYPE), mask=text.is_null())


def geometries(text: pa.Array) -> pa.StructArray:
    """PostGIS' hex EWKB as bytes and SRID, null where it has none.

    `wkb` is the extended form with the SRID inside, as Debezium's is. Byte order and type stand in the first five
    bytes, the SRID, if the type has its flag, in the next four (PostGIS, "EWKB").
    """
    wkb = hex_bytes(text)
    if pc.any(pc.less(pc.binary_length(wkb), 9)).as_py():
        raise DecodeError("a geometry is too short for EWKB")
    head = pc.binary_slice(wkb, 0, 9)
    srid = pa.array([None if value is None else _srid(value) for value in head.to_pylist()], pa.int32())
    return pa.StructArray.from_arrays([wkb, srid], fields=list(GEOMETRY_TYPE), mask=text.is_null())


def _srid(head: bytes) -> int | None:
    kind, srid = struct.unpack("<Ii" if head[0] else ">Ii", head[1:])
    return int(srid) if kind & _SRID_FLAG else None
