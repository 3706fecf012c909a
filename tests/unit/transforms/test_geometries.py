"""SwapGeometryCoordinates and GeometryFormatTransformer."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tailrace.connectors.types.geometry import GEOGRAPHY, GEOMETRY, GEOMETRY_TYPE
from tailrace.errors import ConfigError, TransformError
from tailrace.events import records as columns
from tailrace.events.records import RecordPart, Records
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.geometry_format import GeometryFormat
from tailrace.transforms.settings import Given
from tailrace.transforms.swap_coordinates import SwapGeometryCoordinates
from tests.unit.events.changes import changes
from tests.unit.transforms.transformed import headers, payload, properties, rows

SWAP = "io.debezium.transforms.SwapGeometryCoordinates"
FORMAT = "io.debezium.transforms.GeometryFormatTransformer"
GEO = GEOMETRY.with_(optional=True)
Z, M, SRID = 0x80000000, 0x40000000, 0x20000000
# Of the reference's SwapGeometryCoordinatesTest and GeometryFormatTransformerTest.
POINT, SWAPPED = "010100000000000000000020400000000000003340", "010100000000000000000033400000000000002040"
EXTENDED = "0101000020e610000000000000000020400000000000003340"
EMPTY, EMPTY_EXTENDED = "010700000000000000", "0107000020e610000000000000"

Point = tuple[float, ...]


def head(kind: int, order: str = "<", srid: int | None = None) -> bytes:
    """Byte order, type and SRID."""
    flagged = kind | (0 if srid is None else SRID)
    words = struct.pack(f"{order}BI", order == "<", flagged)
    return words if srid is None else words + struct.pack(f"{order}i", srid)


def run(points: Sequence[Point], order: str = "<") -> bytes:
    """Points one after the other."""
    return b"".join(struct.pack(f"{order}{len(point)}d", *point) for point in points)


def line(points: Sequence[Point], order: str = "<") -> bytes:
    """A number of points, and they."""
    return struct.pack(f"{order}i", len(points)) + run(points, order)


def several(*parts: bytes, order: str = "<") -> bytes:
    """A number of parts, and they."""
    return struct.pack(f"{order}i", len(parts)) + b"".join(parts)


def turned(points: Sequence[Point]) -> list[Point]:
    """With x and y swapped."""
    return [(point[1], point[0], *point[2:]) for point in points]


A: list[Point] = [(30.0, 10.0), (10.0, 30.0), (40.0, 40.0)]
B: list[Point] = [(1.0, 2.0), (3.0, 4.0)]


def shapes(a: list[Point], b: list[Point], order: str = "<") -> dict[str, bytes]:
    """A geometry of each kind; `a` and `b` are its points."""
    one, two = (head(1, order) + run([points[0]], order) for points in (a, b))
    lines = [head(2, order) + line(points, order) for points in (a, b)]
    rings = several(line(a, order), line(b, order), order=order)
    parts = [one, lines[0], head(3, order) + rings, head(4, order) + several(one, two, order=order)]
    return {
        "point": one,
        "line": lines[0],
        "polygon": parts[2],
        "points": parts[3],
        "lines": head(5, order) + several(*lines, order=order),
        "polygons": head(6, order)
        + several(parts[2], head(3, order) + several(line(b, order), order=order), order=order),
        "collection": head(7, order) + several(*parts, head(7, order) + several(two, order=order), order=order),
        "empty": head(7, order) + several(order=order),
        "no points": head(2, order) + line([], order),
        "extended": head(2, order, 4326) + line(a, order),
    }


def geo(*values: tuple[bytes, int | None] | None) -> pa.Array:
    """Geometries with their SRIDs."""
    return pa.array([value and {"wkb": value[0], "srid": value[1]} for value in values], GEOMETRY_TYPE)


def of(values: pa.Array, schema: ConnectSchema = GEO) -> Records:
    """Records of values with one field."""
    count = len(values)
    value = columns.struct(ConnectSchema("struct"), [("geo", RecordPart(schema, values))], count)
    times = pa.nulls(count, pa.timestamp("us", "UTC"))
    return Records(np.arange(count), pa.array(["t"] * count), pa.nulls(count, pa.int32()), times, key=None, value=value)


def left(found: list[Records]) -> list[Any]:
    """The field of each record."""
    made = [each for each in found if len(each)]
    assert len(made) == 1
    assert made[0].value is not None
    return list(made[0].value.field("geo").values.to_pylist())


def swapped(wkb: bytes, srid: int | None = 4326, **settings: str) -> bytes:
    """A geometry after the swap."""
    transform = SwapGeometryCoordinates.of(Given("", settings))
    (found,) = left(transform.apply(of(geo((wkb, srid)))))
    assert found["srid"] == srid
    return bytes(found["wkb"])


def formatted(wkb: str, srid: int | None = 4326, format: str = "wkb") -> str:
    """A geometry after the change of its format, in hex."""
    (found,) = left(GeometryFormat.of(Given("", {"format": format})).apply(of(geo((bytes.fromhex(wkb), srid)))))
    return bytes(found["wkb"]).hex()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", shapes(A, B))
def test_coordinates_of_every_kind_are_swapped(kind: str, order: str) -> None:
    assert swapped(shapes(A, B, order)[kind]) == shapes(turned(A), turned(B), order)[kind]
    assert swapped(shapes(A, B, order)[kind], 3557) == shapes(A, B, order)[kind]


def test_the_references_point_is_swapped() -> None:
    assert swapped(bytes.fromhex(POINT)).hex() == SWAPPED
    assert swapped(bytes.fromhex(EMPTY)).hex() == EMPTY


@pytest.mark.parametrize(
    ("flags", "point"), [(Z, (1.0, 2.0, 3.0)), (M, (1.0, 2.0, 3.0)), (Z | M, (1.0, 2.0, 3.0, 4.0))]
)
def test_more_dimensions_keep_their_places(flags: int, point: Point) -> None:
    point_of = head(1 | flags) + run([point])
    assert swapped(point_of) == head(1 | flags) + run(turned([point]))
    assert swapped(head(4 | flags) + several(point_of)) == head(4 | flags) + several(swapped(point_of))


def test_which_srids_are_swapped() -> None:
    point, other = bytes.fromhex(POINT), bytes.fromhex(SWAPPED)
    assert [swapped(point, srid) == other for srid in (4326, 3857, 4269, 3557, None)] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert [swapped(point, srid, srids=" 1, +2,") == other for srid in (4326, 1, 2)] == [False, True, True]


@pytest.mark.parametrize("text", ["", "a", "4326,,1", "99999999999"])
def test_srids_that_are_no_integers(text: str) -> None:
    with pytest.raises(ConfigError, match=r"srids: An integer is expected, not "):
        SwapGeometryCoordinates.of(Given("", {"srids": text}))


@pytest.mark.parametrize(
    ("wkb", "words"),
    [
        (b"", "index out of range"),
        (head(1)[:3], "requires a buffer"),
        (head(1) + b"\0" * 15, "it ends within a point, after 20 bytes"),
        (head(2) + struct.pack("<i", 2**31 - 1), "it ends within a point"),
        (head(1001) + run([(1.0, 2.0, 3.0)]), "Invalid geometry type: 233"),
        (head(0), "Invalid geometry type: 0"),
    ],
)
def test_what_cannot_be_swapped(wkb: bytes, words: str) -> None:
    with pytest.raises(TransformError, match=f"(?s)Failed to swap EWKB/WKB coordinates: .*{words}"):
        swapped(wkb)


def test_what_follows_the_geometry_is_left_out_as_in_the_reference() -> None:
    assert swapped(bytes.fromhex(POINT) + b"more").hex() == SWAPPED
    assert swapped(head(2) + struct.pack("<i", -1)) == head(2) + struct.pack("<i", -1)


def test_parts_of_another_byte_order_keep_it() -> None:
    given = head(4) + several(head(1, ">") + run([(1.0, 2.0)], ">"))
    assert swapped(given) == head(4) + several(head(1, ">") + run([(2.0, 1.0)], ">"))


def test_geometries_in_arrays_maps_and_structs() -> None:
    """The format's transformer looks into structs alone."""
    point, other = bytes.fromhex(POINT), bytes.fromhex(SWAPPED)
    items = ConnectSchema("array", optional=True, items=GEO)
    lists = pa.array([[{"wkb": point, "srid": 4326}, None], None, []], pa.list_(GEOMETRY_TYPE))
    swap, change = SwapGeometryCoordinates.of(Given("", {})), GeometryFormat.of(Given("", {}))
    assert left(swap.apply(of(lists, items))) == [[{"wkb": other, "srid": 4326}, None], None, []]
    assert left(change.apply(of(lists, items))) == lists.to_pylist()
    by_name = ConnectSchema("map", keys=ConnectSchema("string"), values=GEO)
    maps = pa.array([[("a", {"wkb": point, "srid": 4326}), ("b", None)]], pa.map_(pa.string(), GEOMETRY_TYPE))
    assert left(swap.apply(of(maps, by_name))) == [[("a", {"wkb": other, "srid": 4326}), ("b", None)]]
    inner = columns.struct(ConnectSchema("struct"), [("g", RecordPart(GEO, geo((point, 4326), None)))], 2)
    assert left(swap.apply(of(inner.values, inner.schema))) == [{"g": {"wkb": other, "srid": 4326}}, {"g": None}]
    assert left(change.apply(of(inner.values, inner.schema)))[0]["g"]["wkb"].hex() == EXTENDED


def test_geographies_stay() -> None:
    values = geo((bytes.fromhex(POINT), 4326))
    for transform in (SwapGeometryCoordinates.of(Given("", {})), GeometryFormat.of(Given("", {}))):
        assert left(transform.apply(of(values, GEOGRAPHY))) == values.to_pylist()


@pytest.mark.parametrize(("wkb", "extended"), [(POINT, EXTENDED), (EMPTY, EMPTY_EXTENDED)])
def test_wkb_becomes_ewkb_and_ewkb_becomes_wkb(wkb: str, extended: str) -> None:
    """As in GeometryFormatTransformerTest, by default."""
    assert (formatted(wkb), formatted(extended)) == (extended, wkb)
    assert (formatted(wkb, format="EWKB"), formatted(extended, format="EWKB")) == (wkb, wkb)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("srid", [0, 4326, -2])
def test_the_srid_and_the_dimensions_are_kept(order: str, srid: int) -> None:
    wkb, extended = (head(1 | Z, order, each) + run([(1.0, 2.0, 3.0)], order) for each in (None, srid))
    assert formatted(wkb.hex(), srid) == extended.hex()
    assert formatted(extended.hex(), None) == wkb.hex()


def test_each_geometry_is_converted_for_itself() -> None:
    """In the reference the first EWKB ends the conversion of WKB for good."""
    point, extended = bytes.fromhex(POINT), bytes.fromhex(EXTENDED)
    found = left(GeometryFormat.of(Given("", {})).apply(of(geo((extended, 4326), (point, 4326), None, (point, 1)))))
    first = head(1, "<", 1) + point[5:]
    assert [each and each["wkb"] for each in found] == [point, extended, None, first]


@pytest.mark.parametrize(
    ("wkb", "srid", "words"),
    [
        ("0101", 4326, "a geometry ends within its head"),
        (EXTENDED[:14], 4326, "a geometry ends within its head"),
    ],
)
def test_what_has_no_other_format(wkb: str, srid: int | None, words: str) -> None:
    with pytest.raises(TransformError, match=words):
        formatted(wkb, srid)


def test_wkb_without_an_srid_stays_as_it_is() -> None:
    assert formatted(POINT, None) == POINT


def test_a_format_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ConfigError, match="format: Value must be one of wkb, ewkb"):
        GeometryFormat.of(Given("", {"format": "wkt"}))


def places() -> ChangeBatch:
    """A create and a delete of a row with a geometry."""
    ids = Column("id", ConnectSchema("int32"), pa.int32())
    column = Column("geo", GEO, GEOMETRY_TYPE)
    of_places = TableSchema(TableId("golden", "public", "places"), (ids, column), ("id",), ("id",))
    image = {"id": 1, "geo": {"wkb": bytes.fromhex(POINT), "srid": 4326}}
    return changes(of_places, {"op": "c", "after": image}, {"op": "d", "before": image})


@pytest.mark.parametrize(("kind", "expected"), [(SWAP, SWAPPED), (FORMAT, EXTENDED)])
def test_events_have_converted_geometries(kind: str, expected: str) -> None:
    plain = rows(places(), {})
    created, deleted, tombstone = found = rows(places(), properties(kind))
    wkb = payload(created["value"])["after"]["geo"]["wkb"]
    assert base64.b64decode(wkb).hex() == expected
    assert payload(deleted["value"])["before"] == payload(created["value"])["after"]
    assert payload(created["value"])["before"] is None
    assert tombstone["value"] is None
    assert [each["key"] for each in found] == [each["key"] for each in plain]


def test_a_delete_shares_its_headers_with_its_tombstone_still() -> None:
    given = {
        **properties(SWAP),
        "transforms": "t,h",
        "transforms.h.type": "io.debezium.transforms.ExtractChangedRecordState",
        "transforms.h.header.changed.name": "c",
    }
    found = [headers(each) for each in rows(places(), given)]
    assert found[1] == found[2] == [("c", [])]
