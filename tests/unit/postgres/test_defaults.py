"""Column defaults in schemas, as the catalog prints the expressions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.faults import ALL_FAULTS, NO_FAULTS, Faults
from tailrace.connectors.defaults import shown_default
from tailrace.connectors.postgres.catalog.defaults import parse_default
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tailrace.connectors.value_type import ValueType
from tests.unit.postgres.test_values import config, kind, numeric


def column_default(
    expression: str | None, required: bool, of: ValueType, faults: Faults = NO_FAULTS, name: str = "text"
) -> object:
    return shown_default(parse_default(expression, PgType(name, name), of.schema.name, faults), required, of)


@pytest.mark.parametrize(
    ("name", "modifier", "expression", "value"),
    [
        ("int4", -1, "42", 42),
        ("int4", -1, "'-1'::integer", -1),
        ("int4", -1, "(-1)", -1),
        ("int8", -1, "'9000000000'::bigint", 9000000000),
        ("bool", -1, "true", True),
        ("bool", -1, "false", False),
        ("float8", -1, "1.5", 1.5),
        ("numeric", numeric(5, 2), "1.5", "AJY="),
        ("text", -1, "'it''s'::text", "it's"),
        ("varchar", 14, "'a b'::character varying", "a b"),
        ("json", -1, "'{\"a\": 1}'::json", '{"a": 1}'),
        ("date", -1, "'2018-06-20'::date", 17702),
        ("time", -1, "'15:13:16'::time without time zone", 54796000000),
        ("timestamp", 3, "'2018-06-20 15:13:16.945'::timestamp(3) without time zone", 1529507596945),
        ("interval", -1, "'PT1S'::interval", 1000000),
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_literals(name: str, modifier: int, expression: str, value: Any, required: bool) -> None:
    assert column_default(expression, required, kind(name, modifier)) == value


@pytest.mark.parametrize("expression", ["nextval('s'::regclass)", "now()", "CURRENT_DATE"])
@pytest.mark.parametrize(
    ("name", "zero"),
    [
        ("int4", 0),
        ("float8", 0.0),
        ("bool", False),
        ("text", ""),
        ("date", 0),
        ("timestamp", 0),
        ("timestamptz", "1970-01-01T00:00:00.000000Z"),
        ("interval", 0),
    ],
)
def test_a_function_is_zero_where_a_value_is_required(expression: str, name: str, zero: Any) -> None:
    assert column_default(expression, True, kind(name)) == zero
    assert column_default(expression, False, kind(name)) is None


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(("name", "expression"), [("int4", "(1 + 2)"), ("text", "('x'::text || 'y'::text)")])
def test_any_other_expression_is_no_default(name: str, expression: str, required: bool) -> None:
    assert column_default(expression, required, kind(name)) is None


def test_the_reference_takes_the_first_quoted_text_for_a_literal() -> None:
    assert column_default("('x'::text || 'y'::text)", False, kind("text"), faults=ALL_FAULTS) == "x"


@pytest.mark.parametrize(
    ("name", "expression", "shown"),
    [
        ("text", "'it''s'::text", "it"),
        ("text", "'a\nb'::text", None),
        ("text", "CURRENT_USER", "CURRENT_USER"),
        ("timestamptz", "now()", "1970-01-01T00:00:00.000000Z"),
        ("int4", "(7)::smallint", None),
        ("bool", "(NOT false)", False),
        ("date", "'infinity'::date", 169560311),
        ("timestamptz", "'infinity'::timestamp with time zone", None),
        ("time", "'24:00:00'::time without time zone", 86399999999),
    ],
)
def test_what_the_reference_makes_of_a_default(name: str, expression: str, shown: object) -> None:
    assert column_default(expression, False, kind(name), faults=ALL_FAULTS, name=name) == shown


@pytest.mark.parametrize(("day", "number"), [("0044-03-15 BC", -735160), ("1582-10-10", -141432)])
def test_the_reference_reads_the_default_of_a_date_right_but_not_its_values(day: str, number: int) -> None:
    date = value_type(PgType("date", "date"), -1, config({"compat.faults": "true"}), in_log=False)
    assert date is not None
    assert column_default(f"'{day}'::date", False, date, faults=ALL_FAULTS, name="date") == number
    assert date.convert(pa.array([day])).to_pylist() != [number]


@pytest.mark.parametrize("name", ["timetz", "bytea", "money", "inet", "oid"])
def test_types_whose_defaults_are_not_shown(name: str) -> None:
    assert column_default("'1'", True, kind(name)) is None
    assert column_default("now()", True, kind(name)) is None


@pytest.mark.parametrize("expression", [None, "NULL::integer", "NULL"])
def test_null_is_no_default(expression: str | None) -> None:
    assert column_default(expression, False, kind("int4")) is None
    assert column_default(expression, True, kind("int4")) is None


def test_a_numeric_as_text_has_all_digits_of_its_scale() -> None:
    text = kind("numeric", numeric(5, 3), properties={"decimal.handling.mode": "string"})
    assert column_default("1.5", False, text) == "1.500"
    assert column_default("now()", True, text) == "0.000"
    assert column_default("1.5", False, kind("numeric", properties={"decimal.handling.mode": "string"})) == "1.5"


@pytest.mark.parametrize(
    ("name", "faults", "literal"), [("mood", ALL_FAULTS, "ok"), ("m.d", ALL_FAULTS, None), ("m.d", NO_FAULTS, "ok")]
)
def test_the_reference_shows_no_default_of_an_enum_with_a_dot(name: str, faults: Faults, literal: str | None) -> None:
    default = parse_default(f"'ok'::\"{name}\"", PgType(name, name, labels=("ok",)), None, faults)
    assert default is not None
    assert default.literal == literal


@pytest.mark.parametrize("mode", ["precise", "double", "string"])
def test_a_numeric_that_its_scale_would_round_is_no_default(mode: str) -> None:
    assert column_default("0.25", False, kind("numeric", numeric(4, 1), {"decimal.handling.mode": mode})) is None
    assert column_default("0.20", False, kind("numeric", numeric(4, 1), {"decimal.handling.mode": mode})) is not None


def test_numeric_without_a_scale_has_no_default() -> None:
    assert column_default("1.5", True, kind("numeric")) is None


def test_an_expression_that_cannot_be_parsed_is_no_default_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert column_default("'next tuesday'::date", False, kind("date")) is None
    assert "next tuesday" in caplog.text
