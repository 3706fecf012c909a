"""Geometric types as Debezium 3.7 has them (compat.version=3.7); tests/golden/postgres-3.7 has recordings."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tailrace.connectors.value_type import ValueType, converted
from tailrace.errors import DecodeError
from tailrace.events.avro.datums import datums, joined
from tailrace.events.avro.schema import AvroSettings
from tailrace.model.text.json import encode
from tests.unit.postgres.test_geometry import ewkb, shown
from tests.unit.postgres.test_values import config, kind, read

NEWER = {"compat.version": "3.7"}
NUMBER = st.floats(allow_nan=False)
POINT = st.tuples(NUMBER, NUMBER)
Points = list[tuple[float, float]]


def newer(name: str, **more: str) -> ValueType:
    found: ValueType = kind(name, properties={**NEWER, **{key.replace("__", "."): each for key, each in more.items()}})
    return found


def texts_of(points: Points) -> str:
    return ",".join(f"({shown(x)},{shown(y)})" for x, y in points)


def line_string(points: Points) -> bytes:
    return struct.pack("<BII", 1, 2, len(points)) + b"".join(struct.pack("<dd", *each) for each in points)


def polygon(ring: Points) -> bytes:
    return struct.pack("<BIII", 1, 3, 1, len(ring)) + b"".join(struct.pack("<dd", *each) for each in ring)


def geometry(wkb: bytes, *tags: tuple[str, str]) -> dict[str, Any]:
    return {"wkb": wkb, "srid": None, "extensions": list(tags)}


@given(st.lists(st.none() | st.tuples(POINT, POINT), max_size=8))
def test_boxes_are_rings_around_their_corners(values: list[tuple[Any, Any] | None]) -> None:
    rings = [
        None if each is None else [each[0], (each[0][0], each[1][1]), each[1], (each[1][0], each[0][1]), each[0]]
        for each in values
    ]
    found = read(newer("box"), *(None if each is None else texts_of([*each]) for each in values))
    assert found == [None if ring is None else geometry(polygon(ring), ("type", "box")) for ring in rings]


@given(st.lists(st.none() | st.tuples(POINT, POINT), max_size=8))
def test_segments_are_lines_of_two_points(values: list[tuple[Any, Any] | None]) -> None:
    found = read(newer("lseg"), *(None if each is None else f"[{texts_of([*each])}]" for each in values))
    assert found == [None if each is None else geometry(line_string([*each]), ("type", "lseg")) for each in values]


@given(st.lists(st.none() | st.tuples(st.lists(POINT, min_size=1, max_size=5), st.booleans()), max_size=8))
def test_paths_are_lines_that_say_whether_they_are_closed(values: list[tuple[Points, bool] | None]) -> None:
    texts = [
        None if each is None else f"({texts_of(each[0])})" if each[1] else f"[{texts_of(each[0])}]" for each in values
    ]
    assert read(newer("path"), *texts) == [
        None
        if each is None
        else geometry(line_string(each[0]), ("type", "path"), ("closed", "true" if each[1] else "false"))
        for each in values
    ]


@given(st.lists(st.none() | st.lists(POINT, min_size=1, max_size=5), max_size=8))
def test_polygons_end_where_they_begin(values: list[Points | None]) -> None:
    rings = [each if each is None or len(each) < 2 or each[0] == each[-1] else [*each, each[0]] for each in values]
    found = read(newer("polygon"), *(None if each is None else f"({texts_of(each)})" for each in values))
    assert found == [None if ring is None else geometry(polygon(ring), ("type", "polygon")) for ring in rings]


@given(st.lists(st.none() | st.tuples(NUMBER, NUMBER, NUMBER), max_size=8))
def test_circles_and_lines_have_their_numbers(values: list[tuple[float, float, float] | None]) -> None:
    numbers = [None if each is None else [*map(shown, each)] for each in values]
    circles = read(newer("circle"), *(None if each is None else "<({},{}),{}>".format(*each) for each in numbers))
    assert circles == [
        each and {
            "center": {"x": each[0], "y": each[1], "wkb": struct.pack("<BIdd", 1, 1, *each[:2]), "srid": None},
            "radius": each[2],
        }
        for each in values
    ]  # fmt: skip
    lines = read(newer("line"), *(None if each is None else "{{{},{},{}}}".format(*each) for each in numbers))
    assert lines == [each and dict(zip("abc", each, strict=True)) for each in values]


def test_coordinates_that_are_no_numbers() -> None:
    (found,) = read(newer("circle"), "<(NaN,-Infinity),1e+300>")
    assert math.isnan(found["center"]["x"])
    assert (found["center"]["y"], found["radius"]) == (-math.inf, 1e300)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("box", "(1,2)"),
        ("lseg", "[(1,2),(3,4),(5,6)]"),
        ("path", "[(1,2),3]"),
        ("circle", "<(1,2)>"),
        ("line", "{a,b,c}"),
    ],
)
def test_what_is_none_of_these(name: str, text: str) -> None:
    with pytest.raises(DecodeError):
        read(newer(name), text)


@pytest.mark.parametrize(
    ("name", "text", "json_text"),
    [
        ("box", "(1,1),(0,0)", None),
        ("line", "{1,-1,0.5}", '{"a":1.0,"b":-1.0,"c":0.5}'),
        ("circle", "<(0,0),2>",
         '{"center":{"x":0.0,"y":0.0,"wkb":"AQEAAAAAAAAAAAAAAAAAAAAAAAAA","srid":null},"radius":2.0}'),
        ("path", "[(0,0),(1,0)]",
         '{"wkb":"AQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/AAAAAAAAAAA=","srid":null,'
         '"extensions":{"type":"path","closed":"false"}}'),
    ],
)  # fmt: skip
def test_json_and_avro_write_them(name: str, text: str, json_text: str | None) -> None:
    of = newer(name)
    values = converted(pa.array([text, None]), of, "t.c")
    assert of.schema.optional
    written = encode(values, of.schema).to_pylist()
    assert written[1] == "null"
    assert json_text in (None, written[0])
    assert json.loads(written[0])
    assert [len(each) > 1 for each in joined(datums(values, of.schema, AvroSettings()), 2).to_pylist()] == [True, False]


def test_geometries_of_postgis_have_the_second_version() -> None:
    of = newer("geometry")
    assert (of.schema.version, [each.name for each in of.schema.fields]) == (2, ["wkb", "srid", "extensions"])
    raw = ewkb("<", 4326)
    assert read(of, raw.hex()) == [{"wkb": raw, "srid": 4326, "extensions": None}]
    assert newer("geography").schema == kind("geography").schema


def test_arrays_of_boxes_are_separated_by_semicolons() -> None:
    array = value_type(PgType("_box", "box[]", element=PgType("box", "box")), -1, config(NEWER))
    assert array is not None
    (found,) = read(array, "{(1,1),(0,0);(3,3),(2,2)}")
    assert found == read(newer("box"), "(1,1),(0,0)", "(3,3),(2,2)")


@pytest.mark.parametrize("name", ["box", "circle", "geometry", "line", "lseg", "path", "polygon"])
@pytest.mark.parametrize(
    "properties",
    [{}, {**NEWER, "value.loss.handling.mode": "text"}, {**NEWER, "shape": "table"}, {"compat.version": "1.7"}],
)
def test_without_the_version_and_in_tables_they_are_what_they_were(name: str, properties: dict[str, str]) -> None:
    given_ = {"include.unknown.datatypes": "true"}
    before, found = kind(name, properties=given_), kind(name, properties={**given_, **properties})
    assert (found.schema, found.arrow) == (before.schema, before.arrow)
    assert found.schema.type == ("struct" if name == "geometry" else "bytes")
