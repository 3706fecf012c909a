"""The comparison of replicas knows each type's representation, and finds a changed value of each."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import bson
import pyarrow as pa
import pytest
from bson import Code, DatetimeMS, Decimal128, Int64

from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tests.compare.mongodb.values import Odd, to_bson
from tests.replica.mongodb import Collection
from tests.replica.postgres import PostgresTable
from tests.replica.postgres_types import Modes, PostgresType

UTC = timezone.utc
INT, TEXT = PostgresType("int4"), PostgresType("text")
NAME = TableId("", "public", "t")

_SPARSE = pa.struct([("dimensions", pa.int16()), ("vector", pa.map_(pa.int16(), pa.float64()))])

# A type, the server's text, the replica's type, the value that represents it, and one that does not.
VALUES: list[tuple[PostgresType, str, pa.DataType, Any, Any]] = [
    (PostgresType("bool"), "t", pa.bool_(), True, False),
    (INT, "-1", pa.int32(), -1, 1),
    (PostgresType("float4"), "0.1", pa.float32(), 0.1, 0.10000001),
    (PostgresType("float4"), "NaN", pa.float32(), math.nan, math.inf),
    (PostgresType("float8"), "0.1", pa.float64(), 0.1, 0.10000000000000002),
    (PostgresType("float8"), "-0", pa.float64(), -0.0, 0.0),
    (PostgresType("float8"), "-Infinity", pa.float64(), -math.inf, math.nan),
    (PostgresType("numeric"), "1.10", pa.string(), "1.1", "1.11"),
    (PostgresType("numeric"), "NaN", pa.string(), "NaN", None),
    (PostgresType("numeric"), "NaN", pa.decimal128(9, 2), None, Decimal("0.00")),
    (PostgresType("numeric"), "1.10", pa.decimal128(9, 2), Decimal("1.10"), Decimal("1.00")),
    (PostgresType("money"), "-2.50", pa.decimal128(38, 2), Decimal("-2.50"), Decimal("2.50")),
    (TEXT, "a", pa.string(), "a", "a "),
    (PostgresType("bpchar", 8), "ab  ", pa.string(), "ab  ", "ab"),
    (PostgresType("bytea"), "\\x00ff", pa.binary(), b"\x00\xff", b"\x00"),
    (PostgresType("bit", 1), "1", pa.bool_(), True, False),
    (PostgresType("bit", 12), "100000000001", pa.binary(), b"\x01\x08", b"\x01\x09"),
    (PostgresType("date"), "2024-02-29", pa.date32(), date(2024, 2, 29), date(2024, 3, 1)),
    (PostgresType("date"), "0044-03-15 BC", pa.string(), "-0043-03-15", "-0044-03-15"),
    (PostgresType("date"), "infinity", pa.string(), "infinity", "-infinity"),
    (PostgresType("time"), "12:34:56.7", pa.string(), "12:34:56.700000", "12:34:56.070000"),
    (PostgresType("time"), "24:00:00", pa.string(), "24:00:00.000000", "00:00:00.000000"),
    (PostgresType("timetz"), "12:34:56.7+02", pa.string(), "10:34:56.7Z", "12:34:56.7Z"),
    (
        *(PostgresType("timestamp"), "2024-02-29 12:34:56.7", pa.timestamp("us")),
        *(datetime(2024, 2, 29, 12, 34, 56, 700000), datetime(2024, 2, 29, 12, 34, 56, 700001)),
    ),
    (
        *(PostgresType("timestamptz"), "2024-02-29 12:34:56+00", pa.timestamp("us", "UTC")),
        *(datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC), datetime(2024, 2, 29, 13, 34, 56, tzinfo=UTC)),
    ),
    (PostgresType("timestamptz"), "12024-02-29 12:34:56+00", pa.string(), "+12024-02-29T12:34:56Z", "infinity"),
    (PostgresType("interval"), "P1M2DT-0.5S", pa.int64(), 2_802_599_500_000, 2_802_600_500_000),
    (PostgresType("interval"), "P1M2DT3H", pa.string(), "P0Y1M2DT3H0M0S", "P0Y1M2DT4H0M0S"),
    (PostgresType("mood", is_enum=True), "sad", pa.string(), "sad", "ok"),
    (PostgresType("jsonb"), '{"a": 1}', pa.string(), '{"a": 1}', '{"a": 2}'),
    (PostgresType("box"), "(1,2),(0,0)", pa.binary(), b"(1,2),(0,0)", b"(1,2),(0,1)"),
    (PostgresType("_int4", -1, INT), "{1,NULL}", pa.list_(pa.int32()), [1, None], [1]),
    (PostgresType("_int4", -1, INT), "{{1,2},{3,4}}", pa.list_(pa.list_(pa.int32())), [[1, 2], [3, 4]], [None, None]),
    (PostgresType("_int4", -1, INT), "{{1,2},{3,4}}", pa.string(), "{{1,2},{3,4}}", "{{1,2},{3,5}}"),
    (PostgresType("_int4", -1, INT), "{{1,2},{3,4}}", pa.string(), "[[1, 2], [3, 4]]", "[[1, 2], [3]]"),
    (
        *(PostgresType("_text", -1, TEXT), '{"a,b",NULL,"NULL","\\"","\\\\",""," x ",c d}', pa.list_(pa.string())),
        *(["a,b", None, "NULL", '"', "\\", "", " x ", "c d"], ["a,b", None, None, '"', "\\", "", " x ", "c d"]),
    ),
    (PostgresType("_text", -1, TEXT), "[0:1]={a,b}", pa.list_(pa.string()), ["a", "b"], ["b", "a"]),
    (PostgresType("vector", 2), "[1,0.1]", pa.list_(pa.float64()), [1.0, 0.1], [1.0, 0.11]),
    (
        *(PostgresType("sparsevec", 5), "{1:1,3:2}/5", _SPARSE, {"dimensions": 5, "vector": [(1, 1.0), (3, 2.0)]}),
        {"dimensions": 5, "vector": [(1, 1.0)]},
    ),
    (PostgresType("oidvector"), "1 2", pa.list_(pa.int64()), [1, 2], [2, 1]),
]


def of(type_: PostgresType, *texts: str | None, **more: Any) -> PostgresTable:
    return PostgresTable(NAME, {"v": type_}, [[text] for text in texts], **more)


@pytest.mark.parametrize(("type_", "text", "arrow", "right", "wrong"), VALUES, ids=str)
def test_a_value_is_compared_by_its_documented_representation(
    type_: PostgresType, text: str, arrow: pa.DataType, right: Any, wrong: Any
) -> None:
    modes = Modes(interval="string") if arrow == pa.string() else Modes()
    table = of(type_, text, None, modes=modes)

    def compared(value: Any) -> bool:
        return table.compare(pa.table({"v": pa.array([None, value], arrow)})).is_same

    is_held = not (text == "NaN" and pa.types.is_decimal(arrow))  # a decimal column has no NaN: null is a loss
    assert compared(right) is is_held
    assert not compared(wrong)


def test_a_value_that_is_none_of_the_type_differs() -> None:
    box = of(PostgresType("box"), "(1,1),(0,0)", modes=Modes(binary="hex"))
    assert "not of the type" in str(box.compare(pa.table({"v": ["very happy"]})))


@pytest.mark.parametrize("text", ["infinity", "-infinity", "0044-03-15 12:00:00 BC", "12024-02-29 12:34:56"])
def test_a_time_out_of_range_is_null_where_that_is_asked_for(text: str) -> None:
    empty = pa.table({"v": pa.nulls(1, pa.timestamp("us"))})
    assert of(PostgresType("timestamp"), text, nulls=True).compare(empty).is_same
    assert not of(PostgresType("timestamp"), text).compare(empty).is_same
    assert not of(PostgresType("timestamp"), "9999-12-31 23:59:59", nulls=True).compare(empty).is_same


def test_rows_are_counted() -> None:
    table = of(INT, "1", "1", "2")
    found = table.compare(pa.table({"v": [1, 2, 2]}))
    assert str(found) == "only in the source (1): (v=1), only in the replica (1): (v=2)"
    assert not table.compare(None).is_same
    assert of(INT).compare(None).is_same


def test_columns_of_one_side_are_null_on_the_other() -> None:
    assert of(INT, "1").compare(pa.table({"v": [1], "old": pa.nulls(1)})).is_same
    assert not of(INT, "1").compare(pa.table({"v": [1], "old": [7]})).is_same
    assert of(INT, None).compare(pa.table({"other": pa.nulls(1)})).is_same
    assert not of(INT, "1").compare(pa.table({"other": pa.nulls(1)})).is_same
    assert of(INT, "1").compare(pa.table({"v": [1], "_op": ["c"]})).is_same is False
    assert of(INT, "1", ignored=frozenset({"_op"})).compare(pa.table({"v": [1], "_op": ["c"]})).is_same


# Fields of a document, and the JSON that a replica has for them by default.
DOCUMENTS: list[tuple[Any, str]] = [
    (1, "1"),
    (Int64(1), '{"$numberLong": "1"}'),
    (1.0, "1.0"),
    (-0.0, "-0.0"),
    (math.nan, "NaN"),
    (Decimal128("1.10"), '{"$numberDecimal": "1.10"}'),
    ("é", '"é"'),
    (True, "true"),
    (None, "null"),
    (b"\x01", '{"$binary": "AQ==", "$type": "00"}'),
    (DatetimeMS(-1), '{"$date": -1}'),
    (bson.Timestamp(1, 2), '{"$timestamp": {"t": 1, "i": 2}}'),
    (bson.Regex("a", "im"), '{"$regex": "a", "$options": "im"}'),
    (Code("f()"), '{"$code": "f()"}'),
    (Code("f()", {"x": 1}), '{"$code": "f()", "$scope": {"x": 1}}'),
    (bson.MinKey(), '{"$minKey": 1}'),
    (Odd(6, b""), '{"$undefined": true}'),
    (Odd(14, b"\x02\0\0\0s\0"), '{"$symbol": "s"}'),
    ({"b": 1, "a": [1, {}]}, '{"b": 1, "a": [1, {}]}'),
]


T = TableId("shop", "", "t", DATABASE_TABLE)


def collection(*documents: dict[str, Any]) -> Collection:
    return Collection(T, [to_bson(document) for document in documents], "strict")


def test_a_document_is_compared_by_the_types_of_its_values() -> None:
    for value, text in DOCUMENTS:
        replica = [{"document": f'{{"_id": 7, "v": {other}}}', "id": "7"} for _, other in DOCUMENTS]
        same = [row for row in replica if collection({"_id": 7, "v": value}).compare(_table(row)).is_same]
        assert same == [{"document": f'{{"_id": 7, "v": {text}}}', "id": "7"}]


def test_a_documents_key_is_compared() -> None:
    document = '{"_id": {"$numberLong": "7"}}'
    assert collection({"_id": Int64(7)}).compare(_table({"document": document, "id": "7"})).is_same
    assert not collection({"_id": Int64(7)}).compare(_table({"document": document, "id": "7.0"})).is_same
    assert not collection({"_id": Int64(7)}).compare(_table({"document": None, "id": "7"})).is_same


def test_declared_columns_hold_what_they_can_and_the_rest_has_the_others() -> None:
    types = {"n": pa.int32(), "d": pa.decimal128(5, 2), "at": pa.timestamp("us", "UTC"), "l": pa.list_(pa.int32())}

    def row(**values: Any) -> pa.Table:
        names = {"_key": pa.string(), **types, "_rest": pa.string()}
        return pa.table({name: pa.array([values.get(name)], type_) for name, type_ in names.items()})

    def is_same(document: dict[str, Any], **values: Any) -> bool:
        return collection({"_id": 7, **document}).compare(row(_key="7", **{"_rest": "{}", **values})).is_same

    assert is_same({"n": 1}, n=1)
    assert not is_same({"n": 1}, n=2)
    assert not is_same({"n": 1}, _rest='{"n": 1}')
    assert is_same({"n": 1.5}, _rest='{"n": 1.5}')
    assert not is_same({"n": 1.5}, n=1)
    assert is_same({"n": Int64(2**31)}, _rest='{"n": 2147483648}')
    assert is_same({"d": Decimal128("1.5")}, d=Decimal("1.50"))
    assert is_same({"d": Decimal128("1.505")}, _rest='{"d": {"$numberDecimal": "1.505"}}')
    assert is_same({"at": DatetimeMS(1500)}, at=datetime(1970, 1, 1, 0, 0, 1, 500000, UTC))
    assert is_same({"l": [1, 2]}, l=[1, 2])
    assert is_same({"l": [1, "x"]}, _rest='{"l": [1, "x"]}')
    assert not is_same({"l": [1, "x"]}, l=[1, None])


def test_columns_of_text_hold_dates_and_numbers_where_they_are_asked_to() -> None:
    table = pa.table({name: pa.array([None], pa.string()) for name in ("_key", "at", "_rest")})

    def is_same(value: Any, text: str, **more: Any) -> bool:
        document = Collection(T, [to_bson({"_id": 7, "at": value})], "strict", **more)
        return document.compare(table.set_column(0, "_key", [["7"]]).set_column(1, "at", [[text]])).is_same

    for value, text in (
        (DatetimeMS(253402300800000), "+10000-01-01T00:00:00Z"),
        (DatetimeMS(-62167219200001), "-0001-12-31T23:59:59.999Z"),
        (DatetimeMS(30), "1970-01-01T00:00:00.03Z"),
        (Decimal128("1E+50"), "1E+50"),
        (7, "7"),
    ):
        assert is_same(value, text, as_text="shop.*")
        assert not is_same(value, text)
    assert is_same("x", "x")
    assert is_same({"a": DatetimeMS(0)}, '{"a": {"$date": "1970-01-01T00:00:00Z"}}')


def test_doubles_of_canonical_json_are_javas() -> None:
    for value, text in ((1.0, "1.0"), (1e17, "1.0E17"), (-59053124.2067, "-5.90531242067E7"), (1e-7, "1.0E-7")):
        row = {"document": f'{{"_id": {{"$numberInt": "7"}}, "v": {{"$numberDouble": "{text}"}}}}', "id": "7"}
        assert Collection(T, [to_bson({"_id": 7, "v": value})], "canonical").compare(_table(row)).is_same


def _table(row: dict[str, Any]) -> pa.Table:
    return pa.table({name: pa.array([value], pa.string()) for name, value in row.items()})
