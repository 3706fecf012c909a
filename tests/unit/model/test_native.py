"""Native types: every conversion with its edges, and the error for what a lakehouse cannot hold."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal, getcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import DecodeError
from tailrace.model.native import lost, native_rows, native_schema
from tailrace.model.odd_times import INFINITY_DAYS, INFINITY_US
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema

VARIABLE = ConnectSchema("struct", True, "io.debezium.data.VariableScaleDecimal", 1)
VARIABLE_TYPE = pa.struct([("scale", pa.int32()), ("value", pa.binary())])


def convert(schema: ConnectSchema, values: pa.Array, out_of_range: str = "error") -> pa.Array:
    column = Column("v", schema, values.type, out_of_range=out_of_range)
    table = TableSchema(TableId("db", "public", "t"), (column,), (), ())
    rows = pa.StructArray.from_arrays([values], fields=list(table.row_type))
    native = native_rows(table, rows)
    assert native.type == pa.struct(list(native_schema(table)))
    native.validate(full=True)
    return native.field("v")


def named(name: str, base: str = "int64") -> ConnectSchema:
    return ConnectSchema(base, True, name, 1)


@pytest.mark.parametrize("name", ["io.debezium.time.Date", "org.apache.kafka.connect.data.Date"])
def test_days_become_dates(name: str) -> None:
    days = pa.array([0, -719162, 2932896, None], pa.int32())
    assert convert(named(name), days).to_pylist() == [dt.date(1970, 1, 1), dt.date.min, dt.date.max, None]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("io.debezium.time.Timestamp", 1529507596945),
        ("org.apache.kafka.connect.data.Timestamp", 1529507596945),
        ("io.debezium.time.MicroTimestamp", 1529507596945000),
        ("io.debezium.time.NanoTimestamp", 1529507596945000999),
    ],
)
def test_timestamps_of_every_unit(name: str, value: int) -> None:
    found = convert(named(name), pa.array([value, None]))
    assert found.to_pylist() == [dt.datetime(2018, 6, 20, 15, 13, 16, 945000), None]
    assert found.type == pa.timestamp("us")


def test_nanoseconds_before_1970_are_cut_towards_the_past() -> None:
    found = convert(named("io.debezium.time.NanoTimestamp"), pa.array([-1]))
    assert found.to_pylist() == [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]


def test_zoned_text_becomes_utc() -> None:
    texts = pa.array(["2016-11-04T11:51:30.123456Z", "2016-11-04T11:51:30Z", "2016-11-04T11:51:30.1234567Z", None])
    moment = dt.datetime(2016, 11, 4, 11, 51, 30, tzinfo=dt.timezone.utc)
    fine = moment.replace(microsecond=123456)
    assert convert(named("io.debezium.time.ZonedTimestamp", "string"), texts).to_pylist() == [fine, moment, fine, None]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("io.debezium.time.Date", pa.array([-2147472692], pa.int32())),
        ("io.debezium.time.MicroTimestamp", pa.array([9223372036825200000])),
        ("io.debezium.time.Timestamp", pa.array([-9223372036832400])),
        ("io.debezium.time.Timestamp", pa.array([2**62])),
        ("io.debezium.time.NanoTimestamp", pa.array([0, None, -(2**63)])),
        ("io.debezium.time.ZonedTimestamp", pa.array(["infinity"])),
        ("io.debezium.time.ZonedTimestamp", pa.array(["+21016-11-04T06:51:30.123456Z"])),
    ],
)
def test_what_no_timestamp_can_hold_names_its_column(name: str, value: pa.Array) -> None:
    with pytest.raises(DecodeError, match=r"public\.t, column v"):
        convert(named(name), value)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("io.debezium.time.Time", 10**3),
        ("org.apache.kafka.connect.data.Time", 10**3),
        ("io.debezium.time.MicroTime", 10**6),
        ("io.debezium.time.NanoTime", 10**9),
    ],
)
def test_times_of_day_become_text(name: str, unit: int) -> None:
    values = pa.array([0, 3600 * unit + unit // 2, 86400 * unit, None])
    assert convert(named(name), values).to_pylist() == ["00:00:00.000000", "01:00:00.500000", "24:00:00.000000", None]


def test_decimals_stay_up_to_38_digits() -> None:
    decimal = ConnectSchema("bytes", True, "org.apache.kafka.connect.data.Decimal", 1)
    narrow = pa.array([Decimal("1.10"), None], pa.decimal128(5, 2))
    assert convert(decimal, narrow).equals(narrow)
    assert convert(decimal, narrow.cast(pa.decimal256(38, 2))).type == pa.decimal128(38, 2)
    wide = pa.array([Decimal("-0.0000000001"), None, Decimal("12345678901234567890123456789012345678901")])
    texts = ["-0.0000000001", None, "12345678901234567890123456789012345678901.0000000000"]
    assert convert(decimal, wide.cast(pa.decimal256(60, 10))).to_pylist() == texts


def unscaled(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)


@given(st.lists(st.none() | st.tuples(st.integers(0, 30), st.integers(-(10**70), 10**70))))
def test_variable_decimals_read_as_python_reads_them(numbers: list[tuple[int, int] | None]) -> None:
    getcontext().prec = 200
    rows = [None if number is None else {"scale": number[0], "value": unscaled(number[1])} for number in numbers]
    wanted = [None if number is None else format(Decimal(number[1]).scaleb(-number[0]), "f") for number in numbers]
    found = convert(VARIABLE, pa.array(rows, VARIABLE_TYPE)).to_pylist()
    assert [text if text is None else Decimal(text) for text in found] == [
        text if text is None else Decimal(text) for text in wanted
    ]
    assert not [text for text in found if text is not None and "E" in text]


def test_variable_decimals_beyond_32_bytes() -> None:
    row = {"scale": 3, "value": unscaled(-int("123456789" * 12))}
    long = {"scale": 0, "value": unscaled(10**5000 + 1)}
    digits = "123456789" * 12
    texts = [f"-{digits[:-3]}.{digits[-3:]}", "1" + "0" * 4999 + "1", None]
    assert convert(VARIABLE, pa.array([row, long, None], VARIABLE_TYPE)).to_pylist() == texts


@pytest.mark.parametrize(
    ("arrow", "numbers", "texts"),
    [
        (pa.decimal128(3, 5), ["0.00123", "-0.00001"], ["0.00123", "-0.00001"]),
        (pa.decimal256(5, 60), ["1E-60"], ["0." + "0" * 59 + "1"]),
        (pa.decimal128(5, -2), ["12300", "0", "-100"], ["12300", "0", "-100"]),
    ],
)
def test_decimals_whose_point_lies_outside_their_digits(arrow: Any, numbers: list[str], texts: list[str]) -> None:
    """Delta Lake refuses them as numbers."""
    values = pa.array([*numbers, None]).cast(arrow)
    decimal = ConnectSchema("bytes", True, "org.apache.kafka.connect.data.Decimal", 1)
    assert convert(decimal, values).to_pylist() == [*texts, None]


def test_decimals_too_wide_for_any_number_are_bytes() -> None:
    parameters = (("scale", "5"), ("connect.decimal.precision", "200"))
    decimal = ConnectSchema("bytes", True, "org.apache.kafka.connect.data.Decimal", 1, parameters=parameters)
    values = pa.array([unscaled(10**150 + 1), unscaled(-1), None])
    assert convert(decimal, values).to_pylist() == ["1" + "0" * 145 + ".00001", "-0.00001", None]


def test_arrays_convert_their_items_even_in_a_slice() -> None:
    schema = ConnectSchema("array", True, items=named("io.debezium.time.Date", "int32"))
    values = pa.array([[9], [0, None], None, [], [1]], pa.list_(pa.int32())).slice(1)
    assert convert(schema, values).to_pylist() == [[dt.date(1970, 1, 1), None], None, [], [dt.date(1970, 1, 2)]]


def test_everything_else_stays() -> None:
    for values in (pa.array([1.5, None]), pa.array(["x"]), pa.array([b"x"]), pa.array([True]), pa.array([{"x": 1}])):
        assert convert(ConnectSchema("string", True), values).equals(values)


def test_a_null_image_stays_null() -> None:
    table = TableSchema(
        TableId("db", "public", "t"), (Column("v", named("io.debezium.time.Date", "int32"), pa.int32()),), (), ()
    )
    rows = pa.array([{"v": 1}, None], table.row_type)
    assert native_rows(table, rows).to_pylist() == [{"v": dt.date(1970, 1, 2)}, None]


def odd(name: str, values: pa.Array, policy: str, base: str = "int64") -> list[Any]:
    found: list[Any] = convert(named(name, base), values, policy).to_pylist()
    return found


MICROS, NANOS, ZONED = (f"io.debezium.time.{name}" for name in ("MicroTimestamp", "NanoTimestamp", "ZonedTimestamp"))
YEAR_1_BC_MS, YEAR_10000_MS = -62_167_219_200_001, 253_402_300_800_000


def test_dates_and_times_out_of_range_become_null_if_configured() -> None:
    days = pa.array([0, -719163, 2932897, INFINITY_DAYS["infinity"], None], pa.int32())
    assert odd("io.debezium.time.Date", days, "null") == [dt.date(1970, 1, 1), None, None, None, None]
    for name, unit in (("io.debezium.time.Timestamp", 1), (MICROS, 1000)):
        far = pa.array([unit, YEAR_1_BC_MS * unit, YEAR_10000_MS * unit, INFINITY_US["infinity"] * unit // 1000, None])
        assert odd(name, far, "null") == [dt.datetime(1970, 1, 1, 0, 0, 0, 1000), None, None, None, None]
    assert odd(NANOS, pa.array([1000, 2**63 - 1, -(2**63)]), "null") == [
        dt.datetime(1970, 1, 1, 0, 0, 0, 1),
        None,
        None,
    ]
    text = pa.array(
        ["2018-06-20T13:37:03.1234567Z", "infinity", "-0043-03-15T00:00:00Z", "+10000-01-01T00:00:00Z", None]
    )
    at = dt.datetime(2018, 6, 20, 13, 37, 3, 123456, dt.timezone.utc)
    assert odd(ZONED, text, "null", "string") == [at, None, None, None, None]
    lists = ConnectSchema("array", True, items=named("io.debezium.time.Date", "int32"))
    found = convert(lists, pa.array([[0, 2932897], None], pa.list_(pa.int32())), "null")
    assert found.to_pylist() == [[dt.date(1970, 1, 1), None], None]


def test_columns_of_dates_and_times_become_text_if_configured() -> None:
    days = pa.array([0, -735160, 2932897, INFINITY_DAYS["infinity"], INFINITY_DAYS["-infinity"], None], pa.int32())
    assert odd("io.debezium.time.Date", days, "text") == [
        *("1970-01-01", "-0043-03-15", "+10000-01-01", "infinity", "-infinity", None)
    ]
    for name, unit in (("io.debezium.time.Timestamp", 1), (MICROS, 1000)):
        far = pa.array([500 * unit, YEAR_1_BC_MS * unit, YEAR_10000_MS * unit, INFINITY_US["infinity"] * unit // 1000])
        assert odd(name, far, "text") == [
            *("1970-01-01T00:00:00.5", "-0001-12-31T23:59:59.999", "+10000-01-01T00:00:00", "infinity")
        ]
    nanos = pa.array([1, 600 * 10**9, 2**63 - 1, -(2**63), None])
    assert odd(NANOS, nanos, "text") == [
        *("1970-01-01T00:00:00.000000001", "1970-01-01T00:10:00", "infinity", "-infinity", None)
    ]
    text = pa.array(["2018-06-20T13:37:03.1234567Z", "infinity", None])
    assert odd(ZONED, text, "text", "string") == text.to_pylist()
    lists = ConnectSchema("array", True, items=named("io.debezium.time.Date", "int32"))
    assert convert(lists, pa.array([[0, None]], pa.list_(pa.int32())), "text").to_pylist() == [["1970-01-01", None]]
    assert odd("io.debezium.time.Date", pa.array([], pa.int32()), "text") == []
    assert odd("other", pa.array([5]), "text") == [5]


def test_out_of_range_is_part_of_the_tables_schema() -> None:
    columns = (
        Column("a", named("x"), pa.int64()),
        Column("b", named("x"), pa.int64(), out_of_range="text", placeholder="***"),
    )
    table = TableSchema(TableId("db", "public", "t"), columns, (), ())
    assert TableSchema.from_json(table.to_json()) == table


def test_what_a_column_does_not_keep_is_said() -> None:
    days = Column("v", named("io.debezium.time.Date", "int32"), pa.int32())
    zoned = Column("v", named("io.debezium.time.ZonedTimestamp", "string"), pa.string(), loses="its offset")
    plain = Column("v", ConnectSchema("int32", True), pa.int32(), out_of_range="null")
    listed = Column("v", ConnectSchema("array", items=days.schema), pa.list_(pa.int32()), out_of_range="null")
    null = "values that it does not hold, which are null"
    assert [lost(each) for each in (days, plain, zoned)] == [None, None, "its offset"]
    assert lost(replace(days, out_of_range="null")) == lost(listed) == null
    assert lost(replace(zoned, out_of_range="null")) == f"its offset and {null}"
    assert lost(replace(zoned, out_of_range="text")) is None
