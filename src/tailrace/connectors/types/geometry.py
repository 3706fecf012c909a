"""The schemas of `io.debezium.data.geometry`, and points as their structs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

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


def points(x: pa.Array, y: pa.Array, null: pa.Array) -> pa.StructArray:
    """Points of two arrays of doubles with their well-known binary form; null where `null` is true."""
    wkb = np.empty(len(x), np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")]))
    wkb["order"], wkb["kind"] = 1, 1
    wkb["x"], wkb["y"] = (axis.fill_null(0).to_numpy(zero_copy_only=False) for axis in (x, y))
    fixed = pa.Array.from_buffers(pa.binary(21), len(x), [None, pa.py_buffer(wkb.tobytes())]).cast(pa.binary())
    return pa.StructArray.from_arrays([x, y, fixed, pa.nulls(len(x), pa.int32())], fields=list(POINT_TYPE), mask=null)
