"""Decimals of any database in every mode: schema, Arrow type, values."""

from __future__ import annotations

import base64
import json
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.types import decimal
from tailrace.connectors.value_type import ValueType
from tailrace.errors import DecodeError
from tailrace.model.text.json import encode
from tests.unit.connectors.rules import config


def read(of: ValueType, *texts: str | None) -> list[Any]:
    found = of.convert(pa.array(texts, pa.string()))
    assert found.type == of.arrow
    values: list[Any] = found.to_pylist()
    return values


def test_money_of_four_digits() -> None:
    of = decimal.fixed_type(19, 4, config())
    assert of.schema.parameters == (("scale", "4"), ("connect.decimal.precision", "19"))
    assert read(of, "6.323", None, "-922337203685477.5808") == [
        Decimal("6.3230"),
        None,
        Decimal("-922337203685477.5808"),
    ]


def test_a_schema_without_a_precision() -> None:
    assert decimal.decimal_schema(2).parameters == (("scale", "2"),)


@pytest.mark.parametrize(("mode", "value", "zero"), [("string", "1.10", "0.000"), ("double", 1.1, 0.0)])
def test_other_modes(mode: str, value: object, zero: object) -> None:
    of = decimal.fixed_type(6, 3, config(decimal__handling__mode=mode))
    assert read(of, "1.10") == [value]
    assert of.zero == zero


def test_values_with_a_scale_each() -> None:
    of = decimal.variable_type(config())
    assert of.schema.name == "io.debezium.data.VariableScaleDecimal"
    scales = [(value["scale"], int.from_bytes(value["value"], "big", signed=True)) for value in read(of, "3.140", "-7")]
    assert scales == [(2, 314), (0, -7)]


def test_a_replica_keeps_what_no_decimal_is() -> None:
    of = decimal.fixed_type(6, 3, config(value__loss__handling__mode="text"))
    first, second, third = read(of, "NaN", "1.10", None)
    assert [*first.values()] == [None, "NaN"]
    assert [*second.values()] == [Decimal("1.100"), None]
    assert third is None
    assert read(decimal.variable_type(config(value__loss__handling__mode="text")), "-Infinity", "1.10", "10") == [
        "-Infinity",
        "1.1",
        "10",
    ]


def test_an_arrow_decimal_needs_another_conversion_and_no_other_schema() -> None:
    """A driver that returns decimals as Arrow values gives the same events."""
    of = decimal.fixed_type(6, 3, config())
    driver = pa.array([Decimal("1.123")], pa.decimal128(38, 3))
    (shown,) = encode(driver.cast(of.arrow), of.schema).to_pylist()
    assert base64.b64decode(json.loads(shown)) == (1123).to_bytes(2, "big")


@pytest.mark.parametrize("text", ["0101007500020E6100000", "1" * 20 + "E9999999", "1 234 567 890 123 456 789"])
def test_text_that_is_no_digits_is_an_error(text: str) -> None:
    """A number of millions of digits would keep a task busy for hours."""
    with pytest.raises(DecodeError, match="other signs than digits"):
        decimal.variable_scale(pa.array([text]))


def test_an_exponent_of_a_wide_decimal_is_an_error() -> None:
    with pytest.raises(DecodeError, match="other signs than digits"):
        decimal.unscaled_bytes(pa.array(["1E+999990"]), 5)


@pytest.mark.parametrize(("number", "scale"), [("12300", 2046), ("-0.5", 1), ("9" * 1000, 24)])
def test_a_wide_decimal_is_its_unscaled_value(number: str, scale: int) -> None:
    """numeric(3, -2) has the scale 2046 in Debezium's schema."""
    (found, nothing) = decimal.unscaled_bytes(pa.array([number, None]), scale).to_pylist()
    assert Decimal(int.from_bytes(found, "big", signed=True)) == Context(prec=4000).scaleb(Decimal(number), scale)
    assert nothing is None
