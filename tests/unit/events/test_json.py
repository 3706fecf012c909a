"""Column encoders: any value reads back the same, and the text is Java's."""

import base64
import json
import math
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model import arrow
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.text.json import Decimals, Style, dump, encode, schema_text
from tailrace.model.text.strings import quote

TEXT = ConnectSchema("string", optional=True)
BYTES = ConnectSchema("bytes", optional=True)
DOUBLE = ConnectSchema("double", optional=True)
INT = ConnectSchema("int32", optional=True)

plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
escaped = st.text(st.sampled_from('\x00\x01\x1f\b\t\n\f\r"\\/\x7fé世\u2028\U0001f600a'), max_size=12)
quoted = st.text('a世 "\\', max_size=12)


def sliced(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """An array that does not begin where its buffers do."""
    return pa.array([values[0] if values else None, *values, None], kind).slice(1, len(values))


@settings(deadline=None)
@given(st.lists(st.none() | plain | escaped, max_size=30) | st.lists(st.none() | quoted, max_size=30))
def test_strings_read_back(values: list[str | None]) -> None:
    for kind in (pa.string(), pa.large_string()):
        texts = encode(sliced(values, kind), TEXT).to_pylist()
        assert [json.loads(text) for text in texts] == values
        assert texts == ["null" if value is None else quote(value) for value in values]


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=20), max_size=30))
def test_bytes_read_back(values: list[bytes | None]) -> None:
    texts = [json.loads(text) for text in encode(sliced(values, pa.binary()), BYTES).to_pylist()]
    assert texts == [None if value is None else base64.b64encode(value).decode() for value in values]


unscaled = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(2**70), 2**70) | st.integers(-300, 300)


@settings(deadline=None)
@given(st.lists(st.none() | unscaled, max_size=30))
def test_decimals_read_back(values: list[int | None]) -> None:
    for kind in (pa.decimal128(38, 0), pa.decimal256(60, 0)):
        column = sliced([None if value is None else Decimal(value) for value in values], kind)
        for value, text in zip(values, encode(column, BYTES).to_pylist(), strict=True):
            raw = None if text == "null" else base64.b64decode(json.loads(text))
            assert (None if raw is None else int.from_bytes(raw, "big", signed=True)) == value
            assert value is None or raw == value.to_bytes(
                max(1, (value if value >= 0 else ~value).bit_length() // 8 + 1), "big", signed=True
            )


@settings(deadline=None)
@given(st.lists(st.none() | st.floats(), max_size=30))
def test_doubles_read_back(values: list[float | None]) -> None:
    texts = encode(sliced(values, pa.float64()), DOUBLE).to_pylist()
    for value, text in zip(values, texts, strict=True):
        if value is None:
            assert text == "null"
        else:
            read = float(json.loads(text))
            assert read == value or (math.isnan(read) and math.isnan(value))
            assert math.copysign(1, read) == math.copysign(1, value) or math.isnan(value)


@settings(deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_floats_read_back(values: list[float]) -> None:
    column = pa.array(values, pa.float32())
    texts = encode(column, ConnectSchema("float")).to_pylist()
    assert pa.array([float(text) for text in texts], pa.float32()) == column


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.25, "1.2345678925E8"),
        (1e23, "1.0E23"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_doubles_are_in_java_notation(value: float, text: str) -> None:
    assert encode(pa.array([value, 1.5]), DOUBLE).to_pylist() == [text, "1.5"]
    assert dump(value) == text


def test_escapes_are_jacksons() -> None:
    assert encode(pa.array(['\x00\x1f\b\t\n\f\r"\\/é\x7f\U0001f600']), TEXT).to_pylist() == [
        '"\\u0000\\u001F\\b\\t\\n\\f\\r\\"\\\\/é\x7f\\uD83D\\uDE00"'
    ]


@pytest.mark.slow
def test_long_values_go_the_other_way() -> None:
    text = "世x" * (18 << 20) + '"\U0001f600'
    assert encode(pa.array([text, None]), TEXT).to_pylist() == [f'"{text[:-2]}\\"\\uD83D\\uDE00"', "null"]
    assert encode(pa.array([b"\x01" * 9000, None]), BYTES).to_pylist() == [
        f'"{base64.b64encode(bytes([1]) * 9000).decode()}"',
        "null",
    ]


LONG = b"\x01\xff" * 5000
LONG_TEXT = base64.b64encode(LONG).decode()
GEOMETRY = ConnectSchema("struct", optional=True, fields=(Field("wkb", BYTES), Field("srid", INT)))
GEOMETRY_TYPE = pa.struct([("wkb", pa.binary()), ("srid", pa.int32())])


@pytest.mark.parametrize(
    ("schema", "kind", "value", "shown"),
    [
        (BYTES, pa.binary(), LONG, LONG_TEXT),
        (GEOMETRY, GEOMETRY_TYPE, {"wkb": LONG, "srid": 1}, {"wkb": LONG_TEXT, "srid": 1}),
        (TEXT, pa.string(), "\x01" * 9000, "\x01" * 9000),
        (TEXT, pa.large_string(), "x" * 9000, "x" * 9000),
    ],
)
def test_long_values_within_others(schema: ConnectSchema, kind: pa.DataType, value: object, shown: object) -> None:
    """Values of more than 4 kB on average are encoded one by one, in every place where a value can be."""

    def read(column: pa.Array, of: ConnectSchema) -> list[object]:
        return [json.loads(text) for text in encode(column, of).to_pylist()]

    array = ConnectSchema("array", optional=True, items=schema)
    assert read(pa.array([value, None], kind), schema) == [shown, None]
    assert read(pa.array([[value], None, [], [None, value]], pa.list_(kind)), array) == [
        [shown],
        None,
        [],
        [None, shown],
    ]
    outer = ConnectSchema("array", optional=True, items=array)
    assert read(pa.array([[[value], None], None], pa.list_(pa.list_(kind))), outer) == [[[shown], None], None]
    by_name = ConnectSchema("map", optional=True, keys=ConnectSchema("string"), values=schema)
    assert read(pa.array([[("a", value)], None, []], pa.map_(pa.string(), kind)), by_name) == [{"a": shown}, None, {}]
    row = ConnectSchema("struct", optional=True, fields=(Field("a", array), Field("b", schema)))
    rows = pa.array([{"a": [value], "b": value}, None], pa.struct([("a", pa.list_(kind)), ("b", kind)]))
    assert read(rows, row) == [{"a": [shown], "b": shown}, None]


def test_texts_beyond_what_a_plain_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of 2 GiB, made small: what is longer is a large array, in every place where texts are joined."""
    monkeypatch.setattr(arrow, "LARGEST", 100)
    texts = ConnectSchema("array", optional=True, items=TEXT)
    for length in (10, 60, 200):
        value = "x" * length
        column = pa.array([[value, None], None, [value]], pa.list_(pa.string()))
        found = encode(column, texts)
        assert found.to_pylist() == [f'["{value}",null]', "null", f'["{value}"]']
        assert found.type == (pa.string() if length == 10 else pa.large_string())
        found = encode(pa.array([value.encode()] * 2), BYTES)
        assert [base64.b64decode(json.loads(text)) for text in found.to_pylist()] == [value.encode()] * 2
    assert arrow.text_array([b"x" * 50, None, b"y" * 50]).type == pa.string()
    assert arrow.text_array([b"x" * 50, None, b"y" * 51]).type == pa.large_string()


def test_nested_values() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    column = pa.array([[("x", 0)], [("a", 1), ('"', None)], None, []], kind).slice(1)
    schema = ConnectSchema("map", optional=True, keys=ConnectSchema("string"), values=INT)
    assert encode(column, schema).to_pylist() == ['{"a":1,"\\"":null}', "null", "{}"]
    pairs = pa.array([[(1, 0.5)], []], pa.map_(pa.int16(), pa.float64()))
    by_number = ConnectSchema("map", keys=ConnectSchema("int16"), values=DOUBLE)
    assert encode(pairs, by_number).to_pylist() == ["[[1,0.5]]", "[]"]
    lists = pa.array([[[9]], [[1, None], None], None, []], pa.list_(pa.list_(pa.int32()))).slice(1)
    inner = ConnectSchema("array", optional=True, items=INT)
    outer = ConnectSchema("array", optional=True, items=inner)
    assert encode(lists, outer).to_pylist() == ["[[1,null],null]", "null", "[]"]


def test_null_by_schema() -> None:
    def of(schema: ConnectSchema, defaults: bool = True) -> str:
        return str(encode(pa.array([None, 1], pa.int32()), schema, Style(defaults))[0].as_py())

    assert of(INT) == "null"
    assert of(ConnectSchema("int32")) == "0"
    assert of(ConnectSchema("int32", optional=True, default=7)) == "7"
    assert of(ConnectSchema("int32", optional=True, default=7), False) == "null"
    assert of(ConnectSchema("int32", default=7), False) == "7"


def decimal(scale: int, **more: object) -> ConnectSchema:
    name = "org.apache.kafka.connect.data.Decimal"
    return ConnectSchema("bytes", name=name, parameters=(("scale", str(scale)),)).with_(**more)


def test_decimals_as_numbers_are_printed_as_javas_bigdecimal() -> None:
    """The expected texts are those of BigDecimal.toString, which the JSON converter writes."""
    numeric = Style(decimals=Decimals.NUMERIC)
    values = [Decimal(text) for text in ("1.50", "-0.0000001", "0E-7", "0.000001", "12345678901234567890.1")]
    printed = ["1.5000000", "-1E-7", "0E-7", "0.0000010", "12345678901234567890.1000000"]
    for kind in (pa.decimal128(38, 7), pa.decimal256(70, 7)):
        assert encode(pa.array(values, kind), decimal(7), numeric).to_pylist() == printed
    mixed = pa.array([Decimal("2.50"), None], pa.decimal128(9, 2))
    assert encode(mixed, decimal(2, optional=True), numeric).to_pylist() == ["2.50", "null"]
    assert encode(mixed, decimal(2), numeric).to_pylist() == ["2.50", "0.00"]
    assert encode(mixed, decimal(2, optional=True, default="AfQ="), numeric).to_pylist() == ["2.50", "5.00"]
    assert encode(pa.array([Decimal("1.2E+4")], pa.decimal128(5, -2)), decimal(-2), numeric)[0].as_py() == "1.20E+4"


def test_decimals_beyond_arrows_widest_and_inside_structs_as_numbers() -> None:
    number = -(10**90) + 7
    raw = pa.array([number.to_bytes(40, "big", signed=True), None], pa.binary())
    numeric = Style(decimals=Decimals.NUMERIC)
    assert encode(raw, decimal(3, optional=True), numeric).to_pylist() == [f"-{'9' * 87}.993", "null"]
    row = ConnectSchema("struct", fields=(Field("n", decimal(1)), Field("b", BYTES)))
    column = pa.array([{"n": Decimal("1.5"), "b": b"x"}], pa.struct([("n", pa.decimal128(4, 1)), ("b", pa.binary())]))
    assert encode(column, row, numeric)[0].as_py() == '{"n":1.5,"b":"eA=="}'
    assert encode(column, row)[0].as_py() == '{"n":"Dw==","b":"eA=="}'


def test_plain_decimals_have_all_digits_and_no_exponent() -> None:
    def shown(values: pa.Array, schema: ConnectSchema) -> list[str]:
        numbers: list[str] = encode(values, schema, Style(decimals=Decimals.PLAIN)).to_pylist()
        texts = encode(values, schema, Style(decimals=Decimals.TEXT)).to_pylist()
        assert [text.strip('"') for text in texts] == numbers
        assert all(text == "null" or text.startswith('"') for text in texts)
        return numbers

    cents = pa.array([Decimal("4.06"), Decimal("-0.05"), None], pa.decimal128(9, 2))
    assert shown(cents, decimal(2, optional=True)) == ["4.06", "-0.05", "null"]
    assert shown(cents, decimal(2)) == ["4.06", "-0.05", "0.00"]
    assert shown(cents, decimal(2, optional=True, default="AfQ=")) == ["4.06", "-0.05", "5.00"]
    small = pa.array([Decimal("-0.0000001"), Decimal("12345678901234567890.1")], pa.decimal128(38, 7))
    assert shown(small, decimal(7)) == ["-0.0000001", "12345678901234567890.1000000"]
    assert shown(pa.array([Decimal("1.2E+4")], pa.decimal128(5, -2)), decimal(-2)) == ["12000"]
    kind = pa.struct([("scale", pa.int32()), ("value", pa.binary())])
    fields = (Field("scale", ConnectSchema("int32")), Field("value", ConnectSchema("bytes")))
    variable = ConnectSchema("struct", optional=True, name="io.debezium.data.VariableScaleDecimal", fields=fields)
    mixed = pa.array([{"scale": 3, "value": b"\xff"}, {"scale": 0, "value": b"\x07"}, None], kind)
    assert shown(mixed, variable) == ["-0.001", "7", "null"]
    assert shown(mixed, variable.with_(optional=False)) == ["-0.001", "7", "0"]
    listed = pa.array([[Decimal("1.50"), None]], pa.list_(pa.decimal128(5, 2)))
    items = ConnectSchema("array", items=decimal(2, optional=True))
    assert encode(listed, items, Style(decimals=Decimals.PLAIN)).to_pylist() == ["[1.50,null]"]


def test_defaults_of_decimals_in_schemas_are_numbers_as_well() -> None:
    row = ConnectSchema(
        "struct", fields=(Field("n", decimal(2, default="AfQ=")), Field("b", BYTES.with_(default="eA==")))
    )
    assert '"default":5.00,"field":"n"' in schema_text(row, Style(decimals=Decimals.NUMERIC))
    assert '"default":"eA==","field":"b"' in schema_text(row, Style(decimals=Decimals.NUMERIC))
    assert '"default":"AfQ=","field":"n"' in schema_text(row)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (ConnectSchema("boolean"), "false"),
        (ConnectSchema("double"), "0.0"),
        (ConnectSchema("string"), '""'),
        (ConnectSchema("bytes"), '""'),
        (ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal"), '"AA=="'),
        (ConnectSchema("string", name="io.debezium.time.ZonedTimestamp"), '"1970-01-01T00:00:00Z"'),
        (ConnectSchema("array", items=INT), "[]"),
        *(
            (ConnectSchema("struct", name=f"io.debezium.data.geometry.{kind}"), '{"wkb":"AQcAAAAAAAAA","srid":null}')
            for kind in ("Geometry", "Geography")
        ),
        (ConnectSchema("struct", fields=(Field("a", INT), Field("b", ConnectSchema("int8")))), '{"a":null,"b":0}'),
    ],
)
def test_zero_values_of_required_columns(schema: ConnectSchema, text: str) -> None:
    assert encode(pa.nulls(1), schema).to_pylist() == [text]
