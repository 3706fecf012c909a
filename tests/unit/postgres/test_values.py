"""PostgreSQL's text to Connect values, type by type and mode by mode, with values of the reference engine."""

from __future__ import annotations

import base64
import logging
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config import Config
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tailrace.connectors.value_type import ValueType, converted
from tailrace.errors import DecodeError
from tailrace.model.text.json import null_text

REQUIRED = {
    "topic.prefix": "t",
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "p",
    "database.dbname": "d",
}
STRING = {"decimal.handling.mode": "string"}
DOUBLE = {"decimal.handling.mode": "double"}


def config(properties: dict[str, str] | None = None) -> Config:
    return resolve({**REQUIRED, **(properties or {})})


def kind(name: str, modifier: int = -1, properties: dict[str, str] | None = None, labels: tuple[str, ...] = ()) -> Any:
    return value_type(PgType(name, name, labels), modifier, config(properties))


def read(of: ValueType, *texts: str | None) -> list[Any]:
    """The values of some texts; a null among them must stay one, and a slice must not matter."""
    padded = pa.array(["?", *texts, None], pa.string()).slice(1)
    result = converted(padded, of, "t.c")
    assert result.type == of.arrow
    values: list[Any] = result.to_pylist()
    assert values[-1] is None
    return values[:-1]


def numeric(precision: int, scale: int) -> int:
    return ((precision << 16) | (scale & 0x7FF)) + 4


def big_endian(value: int) -> bytes:
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)


@pytest.mark.parametrize(
    ("name", "texts", "values", "connect"),
    [
        ("bool", ["t", "f"], [True, False], "boolean"),
        ("int2", ["-32768", "32767"], [-32768, 32767], "int16"),
        ("int4", ["-2147483648", "2147483647"], [-(2**31), 2**31 - 1], "int32"),
        ("int8", ["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1], "int64"),
        ("oid", ["4294967295"], [4294967295], "int64"),
        ("float4", ["3.4028235e+38", "1e-45", "-0"], [3.4028234663852886e38, 1.401298464324817e-45, 0.0], "float"),
        ("float8", ["1.7976931348623157e+308", "0.1"], [1.7976931348623157e308, 0.1], "double"),
        ("float8", ["Infinity", "-Infinity"], [float("inf"), float("-inf")], "double"),
        ("text", ["", "grün \U0001f600"], ["", "grün \U0001f600"], "string"),
        ("bpchar", ["a  "], ["a  "], "string"),
        ("tstzrange", ['["2020-01-01 00:00:00+00",)'], ['["2020-01-01 00:00:00+00",)'], "string"),
    ],
)
def test_plain_types(name: str, texts: list[str], values: list[Any], connect: str) -> None:
    of = kind(name)
    assert read(of, *texts) == values
    assert (of.schema.type, of.schema.name) == (connect, None)


def test_not_a_number_stays_one() -> None:
    assert str(read(kind("float8"), "NaN")) == "[nan]"
    assert str(read(kind("float4"), "NaN")) == "[nan]"


@pytest.mark.parametrize(
    ("name", "semantic"), [("json", "Json"), ("jsonb", "Json"), ("xml", "Xml"), ("uuid", "Uuid"), ("ltree", "Ltree")]
)
def test_semantic_texts(name: str, semantic: str) -> None:
    of = kind(name)
    assert read(of, "as printed") == ["as printed"]
    assert (of.schema.name, of.schema.version) == (f"io.debezium.data.{semantic}", 1)


def test_enum_names_its_labels() -> None:
    of = kind("mood", labels=("sad", "ok"))
    assert read(of, "ok") == ["ok"]
    assert of.schema.parameters == (("allowed", "sad,ok"),)


def test_single_bit_is_boolean() -> None:
    assert read(kind("bit", 1), "1", "0") == [True, False]
    assert read(kind("varbit", 1), "1", "0", "", None) == [True, False, False, None]
    faults = {"compat.faults": "true"}
    assert read(kind("varbit", 1, faults), "1", "0", "", None) == [True, False, None, None]


@pytest.mark.parametrize(("unknown", "found"), [("false", None), ("true", "n")])
def test_a_name_of_the_references_log(unknown: str, found: str | None) -> None:
    properties = config({"compat.faults": "true", "include.unknown.datatypes": unknown})
    name = value_type(PgType("name", "name"), -1, properties, in_log=True)
    assert name is not None
    assert read(name, "n") == [found]


@pytest.mark.parametrize("name", ["tsquery", "pg_lsn"])
def test_a_type_without_a_mapping_is_none(name: str) -> None:
    assert kind(name) is None


# Numbers


@pytest.mark.parametrize(
    ("precision", "scale", "text", "value"),
    [
        (3, 2, "1.1", Decimal("1.10")),
        (5, 0, "-12345", Decimal("-12345")),
        (38, 10, "-1234567890123456789012345678.0123456789", Decimal("-1234567890123456789012345678.0123456789")),
        (60, 2, "9" * 58 + ".99", Decimal("9" * 58 + ".99")),
        (2, 4, "0.0012", Decimal("0.0012")),
    ],
)
def test_numeric_with_a_scale(precision: int, scale: int, text: str, value: Decimal) -> None:
    of = kind("numeric", numeric(precision, scale))
    assert read(of, text) == [value]
    assert of.schema.name == "org.apache.kafka.connect.data.Decimal"
    assert of.schema.parameters == (("scale", str(scale)), ("connect.decimal.precision", str(precision)))


def test_numeric_wider_than_any_decimal_is_unscaled_bytes() -> None:
    of = kind("numeric", numeric(1000, 500))
    assert read(of, "1.5", "-" + "9" * 500) == [big_endian(15 * 10**499), big_endian(-(10**500 - 1) * 10**500)]


def test_numeric_with_a_negative_scale() -> None:
    of = kind("numeric", numeric(3, -2))
    assert of.schema.parameters[0] == ("scale", "-2")
    assert [int(value) for value in read(of, "12300")] == [12300]


@pytest.mark.parametrize(
    ("text", "scale", "unscaled"),
    [
        ("10.1111", 4, 101111),
        ("10.00", 0, 10),
        ("100", 0, 100),
        ("0", 0, 0),
        ("0.000", 0, 0),
        ("-0.05", 2, -5),
        ("-128", 0, -128),
        ("128", 0, 128),
        ("123456789012345678901234567890.5", 1, 1234567890123456789012345678905),
        ("-" + "9" * 200, 0, -(10**200 - 1)),
    ],
)
def test_numeric_without_a_scale(text: str, scale: int, unscaled: int) -> None:
    assert read(kind("numeric"), text) == [{"scale": scale, "value": big_endian(unscaled)}]
    assert read(kind("numeric"), text, "7") == [
        {"scale": scale, "value": big_endian(unscaled)},
        {"scale": 0, "value": b"\7"},
    ]


@pytest.mark.parametrize("modifier", [-1, numeric(10, 2)])
def test_special_numerics(modifier: int, caplog: pytest.LogCaptureFixture) -> None:
    special = ("NaN", "Infinity", "-Infinity")
    assert read(kind("numeric", modifier, STRING), *special) == ["NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY"]
    assert str(read(kind("numeric", modifier, DOUBLE), *special)) == "[nan, inf, -inf]"
    assert caplog.records == []
    with caplog.at_level(logging.WARNING):
        assert read(kind("numeric", modifier), *special) == [None, None, None]
    assert "3 NaN or infinite" in caplog.text
    with pytest.raises(DecodeError, match=r"t\.c"):
        read(kind("numeric", modifier, {"event.converting.failure.handling.mode": "fail"}), "NaN")


def test_numeric_as_string_and_double() -> None:
    assert read(kind("numeric", -1, STRING), "123.4500", "-0.00") == ["123.4500", "-0.00"]
    assert read(kind("numeric", numeric(5, 2), DOUBLE), "123.45") == [123.45]


@pytest.mark.parametrize("printed", ["-$1,234.11", "($1,234.11)"])
def test_money(printed: str) -> None:
    assert read(kind("money"), "$1,234,567.89", printed) == [Decimal("1234567.89"), Decimal("-1234.11")]
    assert read(kind("money", -1, STRING), "$1,234.11", printed) == ["1234.11", "-1234.11"]
    assert read(kind("money", -1, DOUBLE), printed) == [-1234.11]
    assert kind("money").schema.parameters == (("scale", "2"),)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (kind("numeric", numeric(10, 2), STRING), "0.00"),
        (kind("numeric", numeric(10, 0), STRING), "0"),
        (kind("numeric", -1, STRING), "0"),
        (kind("money", -1, STRING), "0.00"),
        (kind("money", -1, {**STRING, "money.fraction.digits": "0"}), "0"),
        (kind("text"), ""),
    ],
)
def test_what_an_old_row_lacks_is_zero_in_its_digits(of: ValueType, expected: str) -> None:
    assert null_text(of.schema) == f'"{expected}"'


@pytest.mark.parametrize(
    ("digits", "values"),
    [
        (0, ["1", "-1", "2", "-3", "0", "0", "92233720368547758", "-92233720368547758"]),
        (1, ["0.5", "-0.5", "1.5", "-2.5", "0.1", "0.0", "92233720368547758.1", "-92233720368547758.1"]),
        (2, ["0.50", "-0.50", "1.50", "-2.51", "0.05", "-0.04", "92233720368547758.07", "-92233720368547758.08"]),
        (30, ["0.5", "-0.5", "1.5", "-2.51", "0.05", "-0.04", "92233720368547758.07", "-92233720368547758.08"]),
    ],
)
def test_money_of_other_digits_is_rounded_half_away_from_zero(digits: int, values: list[str]) -> None:
    texts = ("$0.50", "-$0.50", "$1.50", "-$2.51", "$0.05", "-$0.04")
    of = kind("money", -1, {"money.fraction.digits": str(digits)})
    found = read(of, *texts, "$92,233,720,368,547,758.07", "-$92,233,720,368,547,758.08")
    assert found == [Decimal(value) for value in values]
    assert all(-value.as_tuple().exponent == digits for value in found)
    assert of.schema.parameters == (("scale", str(digits)),)


# Binary


@pytest.mark.parametrize("times", [3, 100])
def test_bytea_in_every_mode(times: int) -> None:
    """Values of more than 4 kB on average are encoded in another way."""
    raw = bytes(range(256)) * times + b"\xfb\xff\xfe"
    texts = ("\\x" + raw.hex(), "\\x")
    expected = {
        "bytes": raw,
        "hex": raw.hex(),
        "base64": base64.b64encode(raw).decode(),
        "base64-url-safe": base64.urlsafe_b64encode(raw).decode(),
    }
    for mode, value in expected.items():
        properties = {"binary.handling.mode": mode}
        assert read(kind("bytea", -1, properties), *texts) == [value, type(value)()]
        array = value_type(PgType("_bytea", "bytea[]", (), PgType("bytea", "bytea")), -1, config(properties))
        assert array is not None
        elements = '{"\\' + texts[0] + '",NULL,"\\' + texts[1] + '"}'
        assert read(array, elements, "{}") == [[value, None, type(value)()], []]


@pytest.mark.parametrize("text", ["\\x0", "\\x0g", "escape"])
@pytest.mark.parametrize("mode", ["bytes", "base64"])
def test_bytea_that_is_not_hex(text: str, mode: str) -> None:
    with pytest.raises(DecodeError, match=r"t\.c"):
        read(kind("bytea", -1, {"binary.handling.mode": mode}), text)


# Whatever arrives


@pytest.mark.parametrize(
    ("name", "modifier"),
    [
        *((name, -1) for name in ("int4", "float8", "numeric", "money", "bytea", "date", "time", "timetz")),
        *((name, -1) for name in ("timestamp", "timestamptz", "interval")),
        ("numeric", numeric(10, 2)),
        ("numeric", numeric(1000, 2)),
    ],
)
@pytest.mark.parametrize(
    "text", ["", "nonsense", "1" * 200 + "x", "2020-13-45x", "P1X", "\\xzz", "25:61:61+99", b"\xff\xfe"]
)
def test_nonsense_is_an_error_that_names_the_column(name: str, modifier: int, text: str | bytes) -> None:
    raw = pa.array([text if isinstance(text, bytes) else text.encode()], pa.binary())
    garbage = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    with pytest.raises(DecodeError, match=r"t\.c"):
        converted(garbage, kind(name, modifier), "t.c")


@pytest.mark.parametrize("name", ["date", "timestamp"])
def test_a_day_that_is_none_is_an_error(name: str) -> None:
    with pytest.raises(DecodeError, match=r"t\.c"):
        read(kind(name), "2020-13-45")


def test_no_rows_are_no_values() -> None:
    nothing = pa.array([], pa.string())
    for name in ("bool", "numeric", "money", "bytea", "date", "time", "timetz", "timestamp", "timestamptz", "interval"):
        assert converted(nothing, kind(name), "t.c").to_pylist() == []


def test_short_and_long_numbers_of_one_column() -> None:
    texts = ["1.5", "9" * 5000, "-128", None, "-" + "9" * 19 + ".10"]
    values = [(1, 15), (0, 10**5000 - 1), (0, -128), None, (1, -(10**20 - 9))]
    assert read(kind("numeric"), *texts) == [
        None if each is None else {"scale": each[0], "value": big_endian(each[1])} for each in values
    ]
