"""BOX, LSEG, PATH, POLYGON, CIRCLE and LINE as the structs that Debezium 3.7 has for them (`compat.version=3.7`).

The first four are `Geometry` in its version 2: OGC well-known binary, and the server's type in `extensions`, with
`closed` for a PATH (PostgresValueConverter of 3.7). A circle and an endless line have no such form, so they have their
own structs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.types import geometry
from tailrace.connectors.value_type import Convert, ValueType
from tailrace.errors import DecodeError
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.text.strings import from_bytes

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_DOUBLE = ConnectSchema("double")
_TAGS = ConnectSchema("map", optional=True, keys=ConnectSchema("string"), values=ConnectSchema("string"))
_TAGS_TYPE = pa.map_(pa.string(), pa.string())
# Optional even in a required column, as the reference engine has them.
_GEOMETRY = geometry.GEOMETRY.with_(
    optional=True, version=2, fields=(*geometry.GEOMETRY.fields, Field("extensions", _TAGS))
)
_GEOMETRY_TYPE = pa.struct([*geometry.GEOMETRY_TYPE, ("extensions", _TAGS_TYPE)])
_CIRCLE = ConnectSchema(
    "struct",
    optional=True,
    name="io.debezium.data.geometry.Circle",
    version=1,
    doc="Geometry (CIRCLE)",
    fields=(Field("center", geometry.POINT), Field("radius", _DOUBLE)),
)
_CIRCLE_TYPE = pa.struct([("center", geometry.POINT_TYPE), ("radius", pa.float64())])
_LINE = ConnectSchema(
    "struct",
    optional=True,
    name="io.debezium.data.geometry.Line",
    version=1,
    doc="Geometry (LINE)",
    fields=tuple(Field(name, _DOUBLE) for name in "abc"),
)
_LINE_TYPE = pa.struct([(name, pa.float64()) for name in "abc"])
# Well-known binary: the order of bytes (little-endian), the type, the number of rings in a polygon, that of points.
_LINE_STRING_HEAD = np.dtype([("order", "u1"), ("kind", "<u4"), ("points", "<u4")])
_POLYGON_HEAD = np.dtype([("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4")])
_LINE_STRING_KIND, _POLYGON_KIND = 2, 3
_POINT_BYTES = 16
# The corners of a box, as the places of x and y among those of the two that the server prints, around it and back.
_AROUND = np.array([0, 1, 0, 3, 2, 3, 2, 1, 0, 1])


def _boxes(text: pa.Array) -> pa.StructArray:
    numbers, counts = _numbers(text, 4)
    rings = numbers.reshape(-1, 4)[:, _AROUND].reshape(-1)
    return _geometries(_polygons(rings, counts // 4 * 5, text), text, _tags("box", text))


def _segments(text: pa.Array) -> pa.StructArray:
    numbers, counts = _numbers(text, 4)
    return _geometries(_line_strings(numbers, counts // 2, text), text, _tags("lseg", text))


def _paths(text: pa.Array) -> pa.StructArray:
    numbers, counts = _numbers(text)
    closed = pc.if_else(pc.starts_with(text, "("), "true", "false").fill_null("")
    return _geometries(_line_strings(numbers, counts // 2, text), text, _tags("path", text, closed))


def _areas(text: pa.Array) -> pa.StructArray:
    """POLYGON: a ring, whose first point is its last one, too."""
    numbers, counts = _numbers(text)
    given = counts // 2
    starts = np.cumsum(given) - given
    points = np.concatenate([numbers, [0, 0]]).reshape(-1, 2)  # nulls have places as well
    is_open = (points[starts] != points[np.maximum(starts + given - 1, 0)]).any(axis=1)
    sizes = given + (is_open & (given >= 2))
    # Of each point of the rings its place in its ring, where the added one is the first again.
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.where(within < np.repeat(given, sizes), within, 0) + np.repeat(starts, sizes)
    return _geometries(_polygons(points[places].reshape(-1), sizes, text), text, _tags("polygon", text))


def _circles(text: pa.Array) -> pa.StructArray:
    x, y, radius = _columns(text, 3)
    center = geometry.points(x, y, text.is_null())
    return pa.StructArray.from_arrays([center, radius], fields=list(_CIRCLE_TYPE), mask=text.is_null())


def _lines(text: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(_columns(text, 3), fields=list(_LINE_TYPE), mask=text.is_null())


_CONVERSIONS: dict[str, tuple[ConnectSchema, pa.DataType, Convert]] = {
    "box": (_GEOMETRY, _GEOMETRY_TYPE, _boxes),
    "lseg": (_GEOMETRY, _GEOMETRY_TYPE, _segments),
    "path": (_GEOMETRY, _GEOMETRY_TYPE, _paths),
    "polygon": (_GEOMETRY, _GEOMETRY_TYPE, _areas),
    "circle": (_CIRCLE, _CIRCLE_TYPE, _circles),
    "line": (_LINE, _LINE_TYPE, _lines),
}
TYPES: dict[str, ValueType] = {name: ValueType(*kind) for name, kind in _CONVERSIONS.items()}


def with_extensions(convert: Callable[[pa.Array], pa.StructArray]) -> ValueType:
    """The type of PostGIS' geometries in version 2 of the schema; they have no extensions."""

    def converted(text: pa.Array) -> pa.StructArray:
        parsed = convert(text)
        return _geometries(parsed.field(0), text, pa.nulls(len(parsed), _TAGS_TYPE), parsed.field(1))

    return ValueType(_GEOMETRY, _GEOMETRY_TYPE, converted)


def _numbers(text: pa.Array, count: int | None = None) -> tuple[Numbers, Places]:
    """All numbers of the texts, and how many each of these has: `count`, or pairs of them; a null has none."""
    lists = pc.split_pattern(pc.replace_substring_regex(text, r"[\[\](){}<>]", ""), ",")
    counts = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if (counts % 2 if count is None else (counts != 0) & (counts != count)).any():
        raise DecodeError("a geometric value has another number of coordinates than its type")
    numbers: Numbers = pc.cast(lists.flatten(), pa.float64()).to_numpy(zero_copy_only=False)
    return numbers, counts


def _columns(text: pa.Array, count: int) -> list[pa.Array]:
    """The numbers of each text, as so many columns; null where the text is null."""
    numbers, counts = _numbers(text, count)
    by_text = numbers.reshape(-1, count)
    places = pa.array(np.cumsum(counts // count) - 1, mask=text.is_null().to_numpy(zero_copy_only=False))
    return [pa.array(by_text[:, place], from_pandas=False).take(places) for place in range(count)]


def _line_strings(numbers: Numbers, points: Places, text: pa.Array) -> pa.Array:
    heads = np.zeros(len(points), _LINE_STRING_HEAD)
    heads["order"], heads["kind"], heads["points"] = 1, _LINE_STRING_KIND, points
    return _binary(heads, numbers, points, text)


def _polygons(numbers: Numbers, points: Places, text: pa.Array) -> pa.Array:
    heads = np.zeros(len(points), _POLYGON_HEAD)
    heads["order"], heads["kind"], heads["rings"], heads["points"] = 1, _POLYGON_KIND, 1, points
    return _binary(heads, numbers, points, text)


def _binary(heads: npt.NDArray[np.void], numbers: Numbers, points: Places, text: pa.Array) -> pa.Array:
    """Heads with their points behind them, null where the text is."""
    size = heads.dtype.itemsize
    offsets = np.concatenate([[0], np.cumsum(size + points * _POINT_BYTES)])
    octets = np.empty(offsets[-1], np.uint8)
    is_head = np.zeros(len(octets), np.bool_)
    is_head[(offsets[:-1, None] + np.arange(size)).reshape(-1)] = True
    octets[is_head] = heads.view(np.uint8)
    octets[~is_head] = np.ascontiguousarray(numbers, "<f8").view(np.uint8)
    return from_bytes(offsets, octets, "binary", text)


def _tags(name: str, text: pa.Array, closed: pa.Array | None = None) -> pa.MapArray:
    """The extensions: the type, and whether a path is closed."""
    columns = {"type": pa.repeat(name, len(text))} | ({} if closed is None else {"closed": closed})
    width = len(columns)
    keys = pa.array(list(columns), pa.string()).take(pa.array(np.arange(len(text) * width) % width))
    turn = np.arange(len(text) * width)
    items = pa.concat_arrays(list(columns.values())).take(pa.array(turn % width * len(text) + turn // width))
    return pa.MapArray.from_arrays(pa.array(np.arange(len(text) + 1) * width, pa.int32()), keys, items)


def _geometries(wkb: pa.Array, text: pa.Array, tags: pa.Array, srid: pa.Array | None = None) -> pa.StructArray:
    columns = [wkb, pa.nulls(len(text), pa.int32()) if srid is None else srid, tags]
    return pa.StructArray.from_arrays(columns, fields=list(_GEOMETRY_TYPE), mask=text.is_null())
