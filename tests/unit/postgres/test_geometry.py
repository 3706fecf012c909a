"""Points and PostGIS values."""

from __future__ import annotations

import math
import struct
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tailrace.connectors.postgres.types import geometry
from tailrace.errors import DecodeError
from tests.unit.postgres.test_values import kind, read

NUMBER = st.floats(allow_nan=False)


def shown(number: float) -> str:
    """As the server prints a double."""
    return "Infinity" if number == math.inf else "-Infinity" if number == -math.inf else repr(number)


def point(x: float, y: float) -> dict[str, Any]:
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


@given(st.lists(st.none() | st.tuples(NUMBER, NUMBER), max_size=8), st.integers(0, 3))
def test_points(values: list[tuple[float, float] | None], skipped: int) -> None:
    texts = [None if value is None else f"({shown(value[0])},{shown(value[1])})" for value in values]
    found = geometry.points(pa.array(texts, pa.string()).slice(skipped))
    found.validate(full=True)
    assert found.to_pylist() == [None if value is None else point(*value) for value in values[skipped:]]


def test_a_point_of_nowhere() -> None:
    (found,) = read(kind("point"), "(NaN,1)")
    assert math.isnan(found["x"])
    assert struct.unpack_from("<d", found["wkb"], 13) == (1.0,)


@pytest.mark.parametrize("text", ["", "(1)", "(1,2,3)", "(a,b)", "(,)"])
def test_what_is_no_point(text: str) -> None:
    with pytest.raises((DecodeError, pa.ArrowInvalid)):
        geometry.points(pa.array(["(1,2)", text]))


def ewkb(order: str, srid: int | None) -> bytes:
    head = struct.pack(order + "BI", order == "<", 1 | (0 if srid is None else 0x20000000))
    return head + (b"" if srid is None else struct.pack(order + "i", srid)) + struct.pack(order + "dd", 1.5, -2)


@given(st.lists(st.none() | st.tuples(st.sampled_from("<>"), st.none() | st.integers(0, 999_999)), max_size=8))
def test_geometries_in_both_byte_orders(values: list[tuple[str, int | None] | None]) -> None:
    raw = [None if value is None else ewkb(*value) for value in values]
    texts = ["00", *(None if each is None else each.hex().upper() for each in raw)]
    found = geometry.geometries(pa.array(texts, pa.string()).slice(1))
    found.validate(full=True)
    assert found.to_pylist() == [
        None if value is None else {"wkb": octets, "srid": value[1]} for value, octets in zip(values, raw, strict=True)
    ]


@pytest.mark.parametrize("text", ["", "0", "01", "0101000000", "01zz000020E6100000", "POINT(1 2)"])
def test_what_is_no_geometry(text: str) -> None:
    with pytest.raises(DecodeError):
        geometry.geometries(pa.array([text]))


def test_a_geometry_is_optional_even_where_it_is_required() -> None:
    assert kind("geometry").schema.optional
    assert not kind("geography").schema.optional
    assert not kind("point").schema.optional
