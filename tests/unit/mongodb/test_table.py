"""Documents as rows of typed columns: nothing is rounded, cut or lost."""

from __future__ import annotations

import datetime
import json
import struct
from decimal import Decimal
from typing import Any

import bson
import pyarrow as pa
import pytest
from bson import Binary, Decimal128, Int64, ObjectId
from bson.datetime_ms import DatetimeMS
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.documents import Documents, declared, sampled
from tailrace.connectors.mongodb.types.table import document_rows, inferred_fields
from tailrace.errors import ConfigError
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tests.unit.mongodb.types_documents import PlainReader, document, documents, string, values_of

UTC = datetime.timezone.utc
NOON = datetime.datetime(2026, 7, 3, 12, 30, 0, 250000, UTC)
ID = ObjectId("596e275826f08b2730779e1f")


def table(fields: dict[str, pa.DataType], *rows: dict[str, Any]) -> list[dict[str, Any]]:
    values = values_of([bson.encode(row) for row in rows])
    found = document_rows(values, [pa.field(name, kind) for name, kind in fields.items()])
    found.validate(full=True)
    shown: list[dict[str, Any]] = found.to_pylist()
    return shown


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.string(), "é", "é"),
        (pa.large_string(), "x", "x"),
        (pa.string(), ID, "596e275826f08b2730779e1f"),
        (pa.string(), {"a": [Int64(1), None]}, '{"a": [1,null]}'),
        (pa.string(), [1, "x"], '[1,"x"]'),
        (pa.int32(), 7, 7),
        (pa.int32(), Int64(7), 7),
        (pa.int32(), 7.0, 7),
        (pa.int64(), Int64(2**63 - 1), 2**63 - 1),
        (pa.int64(), -(2.0**62), -(2**62)),
        (pa.int8(), -128, -128),
        (pa.uint64(), Int64(5), 5),
        (pa.float64(), 0.1, 0.1),
        (pa.float64(), float("inf"), float("inf")),
        (pa.float64(), 3, 3.0),
        (pa.float64(), Int64(2**53), 2.0**53),
        (pa.float32(), 0.5, 0.5),
        (pa.bool_(), True, True),
        (pa.timestamp("us", "UTC"), NOON, NOON),
        (pa.timestamp("ms"), NOON, NOON.replace(tzinfo=None)),
        (pa.date32(), datetime.datetime(1969, 12, 31, tzinfo=UTC), datetime.date(1969, 12, 31)),
        (pa.binary(), b"abc", b"abc"),
        (pa.binary(), Binary(b"abc", 2), b"abc"),
        (pa.decimal128(10, 2), Decimal128("12.5"), Decimal("12.50")),
        (pa.decimal128(10, 2), Decimal128("-12.500"), Decimal("-12.50")),
        (pa.decimal128(38, 0), Decimal128("1E+10"), Decimal(10**10)),
        (pa.decimal128(10, 2), Decimal128("0E+6111"), Decimal("0.00")),
        (pa.decimal128(10, 2), 12, Decimal("12.00")),
        (pa.decimal128(38, 18), Int64(-(10**18)), Decimal(-(10**18))),
        (pa.list_(pa.int64()), [1, None, Int64(2)], [1, None, 2]),
        (pa.large_list(pa.string()), [], []),
        (pa.list_(pa.field("element", pa.int32())), [4], [4]),
        (pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}), {"b": ["x"], "a": 1}, {"a": 1, "b": ["x"]}),
        (pa.struct({"a": pa.int32(), "b": pa.string()}), {"a": 1}, {"a": 1, "b": None}),
        (pa.list_(pa.struct({"a": pa.date32()})), [{"a": None}, {}], [{"a": None}, {"a": None}]),
    ],
)
@pytest.mark.parametrize("times", [1, 100])
def test_what_a_type_holds(kind: pa.DataType, value: Any, expected: Any, times: int) -> None:
    assert table({"v": kind}, *[{"v": value}] * times) == [{"v": expected, "_rest": None}] * times


@pytest.mark.parametrize(
    ("kind", "value", "rest"),
    [
        (pa.string(), 1, "1"),
        (pa.string(), 1.5, "1.5"),
        (pa.int32(), Int64(2**31), "2147483648"),
        (pa.int32(), 1.5, "1.5"),
        (pa.int32(), "1", '"1"'),
        (pa.int64(), 2.0**63, "9.223372036854776E18"),
        (pa.int64(), -0.0, "-0.0"),
        (pa.int64(), float("nan"), '{"$numberDouble": "NaN"}'),
        (pa.uint8(), -1, "-1"),
        (pa.float64(), Int64(2**53 + 1), "9007199254740993"),
        (pa.float64(), Int64(2**63 - 1), "9223372036854775807"),
        (pa.float64(), Decimal128("0.5"), '{"$numberDecimal": "0.5"}'),
        (pa.float32(), 0.1, "0.1"),
        (pa.bool_(), 1, "1"),
        (pa.date32(), NOON, '{"$date": "2026-07-03T12:30:00.25Z"}'),
        (pa.timestamp("s"), NOON, '{"$date": "2026-07-03T12:30:00.25Z"}'),
        (pa.timestamp("us", "UTC"), DatetimeMS(-62_135_596_800_001), '{"$date": {"$numberLong": "-62135596800001"}}'),
        (pa.timestamp("us", "UTC"), DatetimeMS(253_402_300_800_000), '{"$date": {"$numberLong": "253402300800000"}}'),
        (pa.date32(), DatetimeMS(253_402_300_800_000), '{"$date": {"$numberLong": "253402300800000"}}'),
        (pa.timestamp("ns"), datetime.datetime(9000, 1, 1), '{"$date": "9000-01-01T00:00:00Z"}'),
        (pa.decimal128(4, 2), Decimal128("123.4"), '{"$numberDecimal": "123.4"}'),
        (pa.decimal128(4, 2), Decimal128("1.234"), '{"$numberDecimal": "1.234"}'),
        (pa.decimal128(4, 2), Decimal128("1E+6111"), '{"$numberDecimal": "1E+6111"}'),
        (pa.decimal128(4, 2), Decimal128("1E-6176"), '{"$numberDecimal": "1E-6176"}'),
        (pa.decimal128(4, 2), Decimal128("NaN"), '{"$numberDecimal": "NaN"}'),
        (pa.decimal128(4, 2), 100, "100"),
        (pa.list_(pa.int32()), [1, "x"], '[1,"x"]'),
        (pa.list_(pa.int32()), 1, "1"),
        (pa.struct({"a": pa.int32()}), {"a": 1, "b": 2}, '{"a": 1,"b": 2}'),
        (pa.struct({"a": pa.int32()}), {"a": "x"}, '{"a": "x"}'),
        (pa.struct({"a": pa.list_(pa.int32())}), {"a": [1.5]}, '{"a": [1.5]}'),
    ],
)
@pytest.mark.parametrize("times", [1, 100])
def test_what_a_type_does_not_hold_stays_in_the_rest(kind: pa.DataType, value: Any, rest: str, times: int) -> None:
    rows = table({"v": kind}, *[{"v": value}] * times, {"v": None})
    assert rows[:-1] == [{"v": None, "_rest": f'{{"v": {rest}}}'}] * times
    assert rows[-1] == {"v": None, "_rest": None}


@pytest.mark.parametrize("is_sampled", [True, False])
def test_columns_of_dates_and_decimals_are_texts_if_configured(is_sampled: bool) -> None:
    columns = {} if is_sampled else {"document.columns": ".*: at TIMESTAMP, price DECIMAL(10,2), on TIMESTAMP"}
    given = {"mongodb.connection.string": "mongodb://h", "topic.prefix": "t", **columns}
    texts = {"column.out.of.range.text": r"shop\.a\.(at|price)", "column.out.of.range.null": ".*"}
    config, id_ = resolve({**given, **texts}), TableId("shop", "", "a", DATABASE_TABLE)
    rows = [{"at": NOON, "price": Decimal128("2.50"), "on": NOON}]
    odd: list[dict[str, Any]] = [
        {"at": DatetimeMS(10**15), "price": Decimal128("1E+50"), "on": DatetimeMS(10**15)},
        {"price": 3, "at": True},
    ]
    documents = values_of([bson.encode(row) for row in [*rows, *odd]])
    if is_sampled:
        schema = sampled(config, id_, values_of([bson.encode(row) for row in rows]))
        config = resolve({**given, **texts, **declared(schema.row_type)})
    else:
        schema = Documents(config).schema(id_)
    found = Documents(config).images(schema, documents, pa.array(["1", "2", "3"])).to_pylist()
    assert [(row["at"], row["price"], row["on"], row["_rest"]) for row in found] == [
        ("2026-07-03T12:30:00.25Z", "2.50", NOON, None),
        ("+33658-09-27T01:46:40Z", "1E+50", None, '{"on": {"$date": {"$numberLong": "1000000000000000"}}}'),
        (None, "3", None, '{"at": true}'),
    ]


def test_undeclared_fields_and_rows_of_all_kinds() -> None:
    rows = table(
        {"_id": pa.int64(), "name": pa.string(), "tags": pa.list_(pa.string())},
        {"_id": 1, "name": "a", "tags": ["x"]},
        {"other": {"n": 1}, "name": None, "_id": Int64(2), 'q"': [1]},
        {},
        {"_id": 3.0, "tags": [1], "name": 5},
    )
    assert rows == [
        {"_id": 1, "name": "a", "tags": ["x"], "_rest": None},
        {"_id": 2, "name": None, "tags": None, "_rest": '{"other": {"n": 1},"q\\"": [1]}'},
        {"_id": None, "name": None, "tags": None, "_rest": None},
        {"_id": 3, "name": None, "tags": None, "_rest": '{"tags": [1],"name": 5}'},
    ]


def test_of_equal_names_the_last_value_counts_at_the_place_of_the_first() -> None:
    one, text, zero = (0x10, struct.pack("<i", 1)), (0x02, string(b"x")), (0x10, bytes(4))
    inner = (0x03, document((b"k", one), (b"k", zero)))
    data = [
        document((b"a", one), (b"b", inner), (b"a", text), (b"a", zero)),
        document((b"a", one), (b"c", one), (b"a", text), (b"c", inner)),
        document((b"c", text), (b"b", one), (b"c", zero)),
    ]
    found = document_rows(values_of(data), [pa.field("a", pa.int32()), pa.field("b", pa.string())]).to_pylist()
    assert found == [
        {"a": 0, "b": '{"k": 0}', "_rest": None},
        {"a": None, "b": None, "_rest": '{"a": "x","c": {"k": 0}}'},
        {"a": None, "b": None, "_rest": '{"c": 0,"b": 1}'},
    ]
    assert inferred_fields(values_of(data[:1])) == [pa.field("a", pa.int32()), pa.field("b", pa.string())]


def test_names_that_differ_only_in_their_lengths_are_distinguished() -> None:
    rows = [{"": 1, "\x01": 2, "\x02": 3}]
    assert table({"": pa.int32(), "\x01": pa.int32()}, *rows) == [{"": 1, "\x01": 2, "_rest": '{"\\u0002": 3}'}]


@settings(deadline=None)
@given(data=st.lists(documents(), max_size=6), few=st.booleans())
def test_nothing_declared_is_all_in_the_rest(data: list[bytes], few: bool) -> None:
    rows = document_rows(values_of(data), []).to_pylist()
    assert [row["_rest"] or "{}" for row in rows] == [PlainReader(one, "relaxed").json() for one in data]


@settings(deadline=None)
@given(data=st.lists(documents(), max_size=6))
def test_inferred_fields_and_the_rest_hold_every_name(data: list[bytes]) -> None:
    values = values_of(data)
    rows = document_rows(values, inferred_fields(values))
    rows.validate(full=True)
    columns = {field.name: rows.field(number) for number, field in enumerate(rows.type)}
    rests = columns.pop("_rest").to_pylist()
    for row, one in enumerate(data):
        rest = json.loads(rests[row] or "{}")
        whole = json.loads(PlainReader(one, "relaxed").json())
        for name, value in whole.items():
            in_column = name in columns and columns[name][row].is_valid
            assert in_column != (name in rest) or value is None


def test_inferred_types() -> None:
    sample: list[dict[str, Any]] = [
        {"_id": ID, "n": 1, "m": 1, "d": 1, "mixed": 1, "o": {"a": 1}, "always": None, "b": b"", "t": NOON, "x": None},
        {"_id": ID, "n": 2, "m": Int64(2), "d": 0.5, "mixed": "x", "o": [1], "b": b"", "t": NOON, "x": Decimal128("1")},
        {"late": True},
    ]
    fields = inferred_fields(values_of([bson.encode(row) for row in sample]))
    assert {field.name: str(field.type) for field in fields} == {
        "_id": "string",
        "n": "int32",
        "m": "int64",
        "d": "double",
        "o": "string",
        "b": "binary",
        "t": "timestamp[us, tz=UTC]",
        "x": "decimal128(38, 18)",
        "late": "bool",
    }


def test_a_type_that_no_value_has_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no BSON value has the type time64"):
        table({"v": pa.time64("us")}, {"v": 1})
