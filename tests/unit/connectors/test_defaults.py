"""What a schema shows of a default, whatever the database's syntax."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tailrace.connectors.defaults import Default, shown_default
from tailrace.connectors.types.decimal import fixed_type
from tailrace.connectors.value_type import text_type
from tests.unit.connectors.rules import INTEGER, TEXT, config

ENUM = text_type("io.debezium.data.Enum")


def test_a_literal_is_shown_as_its_value() -> None:
    assert shown_default(Default("((42))", "42"), False, INTEGER) == 42
    assert shown_default(Default("('42')", "42"), True, TEXT) == "42"


def test_a_function_is_zero_where_a_value_is_required() -> None:
    now = Default("(getdate())", is_function=True)
    assert shown_default(now, True, INTEGER) == 0
    assert shown_default(now, False, INTEGER) is None


@pytest.mark.parametrize("required", [True, False])
def test_no_default_and_any_other_expression(required: bool) -> None:
    assert shown_default(None, required, INTEGER) is None
    assert shown_default(Default("((1)+(2))"), required, INTEGER) is None


def test_types_that_show_no_default() -> None:
    assert shown_default(Default("'x'", "x"), True, text_type()) is None
    assert shown_default(Default("'x'", "x"), True, ENUM) == "x"


def test_a_decimal_as_text_has_all_digits_of_its_scale() -> None:
    of = fixed_type(5, 3, config(decimal__handling__mode="string"))
    assert shown_default(Default("1.5", "1.5"), False, of) == "1.500"
    assert shown_default(Default("((1.5))", "1.5", as_written=True), False, of) == "1.5"
    whole = fixed_type(12, 0, config(decimal__handling__mode="string"))
    assert shown_default(Default("0.0", "0.0"), True, whole) == "0"
    assert shown_default(Default("2.5", "2.5"), True, whole) is None


def test_what_cannot_be_read_is_no_default_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert shown_default(Default("('many')", "many"), False, INTEGER) is None
    assert "default ('many') cannot be read as int32" in caplog.text


def test_a_literal_that_the_type_cannot_hold_is_no_default() -> None:
    nothing = replace(INTEGER, convert=lambda text: pa.nulls(len(text), pa.int64()))
    assert shown_default(Default("'0001-01-01'", "0001-01-01"), False, nothing) is None
