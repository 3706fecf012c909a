"""Texts of headers by SimpleHeaderConverter and StringConverter; recordings have more of them (tests/golden)."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.converter_names import SIMPLE, STRING
from tailrace.events.converter import Converter
from tailrace.events.header_texts import header_texts
from tailrace.model.schema import ConnectSchema, Field

LOGICAL = "org.apache.kafka.connect.data."
TEXT = ConnectSchema("string", optional=True)
DOUBLE = ConnectSchema("double", optional=True)
DATE = ConnectSchema("int32", optional=True, name=LOGICAL + "Date", version=1)
BYTES = ConnectSchema("bytes", optional=True)
NOT_FINITE = [math.nan, math.inf, -math.inf, 1e10, None]


def texts(kind: str, values: pa.Array, schema: ConnectSchema, *, lacks_dates: bool = False) -> list[str | None]:
    """The texts of a header, sliced or not."""
    converter = Converter(False, kind=kind, lacks_dates=lacks_dates)
    found: list[str | None] = header_texts(values, schema, converter, "h").to_pylist()
    padded = pa.concat_arrays([values.slice(0, 1), values]).slice(1)
    assert header_texts(padded, schema, converter, "h").to_pylist() == found
    return found


def test_a_struct_as_java_prints_it_has_no_fields_that_are_null() -> None:
    schema = ConnectSchema("struct", fields=(Field("a", TEXT), Field("b", TEXT)))
    rows = [{"a": "1", "b": "2"}, {"a": None, "b": "2"}, {"a": ",", "b": None}, {"a": None, "b": None}, None]
    values = pa.array(rows, pa.struct([("a", pa.string()), ("b", pa.string())]))
    assert texts(STRING, values, schema) == ["Struct{a=1,b=2}", "Struct{b=2}", "Struct{a=,}", "Struct{}", None]


def test_a_struct_of_one_field_that_is_null_has_a_text() -> None:
    schema = ConnectSchema("struct", fields=(Field("a", TEXT),))
    values = pa.array([{"a": None}, {"a": "x"}], pa.struct([("a", pa.string())]))
    assert texts(STRING, values, schema) == ["Struct{}", "Struct{a=x}"]


@pytest.mark.parametrize("kind", [SIMPLE, STRING])
@pytest.mark.parametrize(("type_", "connect"), [(pa.float32(), "float"), (pa.float64(), "double")])
def test_nan_and_infinities_have_no_quotes(kind: str, type_: pa.DataType, connect: str) -> None:
    schema = ConnectSchema(connect, optional=True)
    expected = ["NaN", "Infinity", "-Infinity", "1.0E10", None]
    assert texts(kind, pa.array(NOT_FINITE, type_), schema) == expected
    lists = pa.array([NOT_FINITE, [], None], pa.list_(type_))
    gap = ", " if kind == STRING else ","
    shown = f"[{gap.join(text or 'null' for text in expected)}]"
    assert texts(kind, lists, ConnectSchema("array", items=schema, optional=True)) == [shown, "[]", None]


def test_a_struct_has_quotes_around_texts_and_bytes_alone() -> None:
    names = ('a "quoted\\ name', "b", "c", "d", "e")
    schemas = (TEXT, BYTES, DOUBLE, DATE, ConnectSchema("int32", default=7))
    schema = ConnectSchema("struct", fields=tuple(map(Field, names, schemas)))
    kinds = (pa.string(), pa.binary(), pa.float64(), pa.int32(), pa.int32())
    type_ = pa.struct(list(zip(names, kinds, strict=True)))
    rows = [
        dict(zip(names, ('x "y" \\ z \n \U0001f600', b"\x01", math.nan, 19782, 1), strict=True)),
        dict.fromkeys(names),
    ]
    found = texts(SIMPLE, pa.array([*rows, None], type_), schema)
    name = '"a \\"quoted\\\\ name"'
    assert found == [
        f'{{{name}:"x \\"y\\" \\\\ z \n \U0001f600","b":"AQ==","c":NaN,"d":2024-02-29,"e":1}}',
        f'{{{name}:null,"b":null,"c":null,"d":null,"e":7}}',
        None,
    ]


def test_maps() -> None:
    schema = ConnectSchema("map", optional=True, keys=ConnectSchema("string"), values=DOUBLE)
    values = pa.array([[("a", math.inf), ("b", None)], [], None], pa.map_(pa.string(), pa.float64()))
    assert texts(SIMPLE, values, schema) == ['{"a":Infinity,"b":null}', "{}", None]
    assert texts(STRING, values, schema) == ["{a=Infinity, b=null}", "{}", None]


@pytest.mark.parametrize(
    ("name", "value", "simple", "faulty", "java"),
    [
        ("Date", 19782, "2024-02-29", "2024-02-29", "Thu Feb 29 00:00:00 UTC 2024"),
        ("Date", -1, "1969-12-31", "00:00:00.000Z", "Wed Dec 31 00:00:00 UTC 1969"),
        ("Date", -735_160, "0044-03-15", "00:00:00.000Z", "Fri Mar 15 00:00:00 UTC 44"),
        ("Time", 45_296_789, "12:34:56.789Z", "12:34:56.789Z", "Thu Jan 01 12:34:56 UTC 1970"),
        ("Timestamp", 86_400_000, "1970-01-02", "1970-01-02", "Fri Jan 02 00:00:00 UTC 1970"),
        ("Timestamp", -1, "1969-12-31T23:59:59.999Z", "23:59:59.999Z", "Wed Dec 31 23:59:59 UTC 1969"),
    ],
)
def test_times_of_connect(name: str, value: int, simple: str, faulty: str, java: str) -> None:
    """With the fault Connect's own texts, which leave the date out before 1970-01-02."""
    kind = "int64" if name == "Timestamp" else "int32"
    schema = ConnectSchema(kind, optional=True, name=LOGICAL + name, version=1)
    values: Any = pa.array([value, None], pa.int64() if kind == "int64" else pa.int32())
    assert texts(SIMPLE, values, schema) == [simple, None]
    assert texts(SIMPLE, values, schema, lacks_dates=True) == [faulty, None]
    assert texts(STRING, values, schema) == [java, None]
