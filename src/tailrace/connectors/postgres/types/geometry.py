"""POINT and PostGIS: from PostgreSQL's text to the structs of `io.debezium.data.geometry`."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.types import geometry
from tailrace.connectors.types.binary import hex_bytes
from tailrace.errors import DecodeError

_SRID_FLAG = 0x20000000


def points(text: pa.Array) -> pa.StructArray:
    """`(1.5,-2)` as x, y and well-known binary."""
    parts = pc.split_pattern(pc.utf8_trim(text, "()"), ",")
    if not pc.all(pc.equal(pc.list_value_length(parts), 2), min_count=0).as_py():
        raise DecodeError("a point does not have two coordinates")
    x, y = (pc.cast(pc.list_element(parts, place), pa.float64()) for place in (0, 1))
    return geometry.points(x, y, text.is_null())


def geometries(text: pa.Array) -> pa.StructArray:
    """PostGIS' hex EWKB as bytes and SRID, null where it has none.

    `wkb` is the extended form with the SRID inside, as Debezium's is. The first five bytes are byte order and type; the
    next four are the SRID if the type has its flag (PostGIS, "EWKB").
    """
    wkb = hex_bytes(text)
    if pc.any(pc.less(pc.binary_length(wkb), 9)).as_py():
        raise DecodeError("a geometry is too short for EWKB")
    head = pc.binary_slice(wkb, 0, 9)
    srid = pa.array([None if value is None else _srid(value) for value in head.to_pylist()], pa.int32())
    return pa.StructArray.from_arrays([wkb, srid], fields=list(geometry.GEOMETRY_TYPE), mask=text.is_null())


def _srid(head: bytes) -> int | None:
    kind, srid = struct.unpack("<Ii" if head[0] else ">Ii", head[1:])
    return int(srid) if kind & _SRID_FLAG else None
