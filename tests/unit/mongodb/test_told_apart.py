"""Two fields that differ have two values in a replica, or what they differ in is named."""

from __future__ import annotations

import datetime
from collections import defaultdict
from itertools import combinations
from typing import Any

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.documents import Documents
from tailrace.connectors.mongodb.snapshot.reads import value_of
from tailrace.model.native import native_rows
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_id import DATABASE_TABLE
from tailrace.sinks.replica.digest import row_hashes
from tests.unit.mongodb.types_documents import values_of

ID = ObjectId("596e275826f08b2730779e1f")
DAY = datetime.datetime(2026, 7, 3, tzinfo=datetime.timezone.utc)
MISSING = object()
NUMBERS: tuple[Any, ...] = (1, Int64(1), 1.0, Decimal128("1"), Decimal128("1.0"), "1")
PLAIN: tuple[Any, ...] = (True, None, 0, 0.0, -0.0, "", " ", "a", "a ", "A", [], {}, [None], [1])
# fmt: off
VALUES: dict[str, Any] = {
    **{f"{type(each).__name__} {each}": each for each in NUMBERS},
    **{f"{each!r}": each for each in PLAIN},
    "NaN": float("nan"), "inf": float("inf"), "next": 1.0000000000000002, "2^53": 2.0**53, "2^53+1": Int64(2**53 + 1),
    "1E3": Decimal128("1E+3"), "1000": Decimal128("1000"), "-0 decimal": Decimal128("-0"), "0 decimal": Decimal128("0"),
    "composed": "é", "decomposed": "e\u0301", "zero": "a\0b", "ObjectId": ID, "its text": str(ID), "missing": MISSING,
    "day": DAY, "later": DAY + datetime.timedelta(milliseconds=1), "stamp": Timestamp(1, 1), "stamp 2": Timestamp(1, 2),
    **{f"binary {kind}": Binary(b"a" * 16, kind) for kind in (0, 2, 3, 4, 128)},
    "regex": Regex("a"), "regex i": Regex("a", "i"), "code": Code("x"), "scope": Code("x", {}), "ref": DBRef("c", 1),
    "MinKey": MinKey(), "MaxKey": MaxKey(), "ab": {"a": 1, "b": 2}, "ba": {"b": 2, "a": 1}, "text": '{"a": 1, "b": 2}',
}
# fmt: on
DECLARED = (
    *("STRING", "BIGINT", "DOUBLE", "DECIMAL(38,10)", "TIMESTAMP", "DATE", "BINARY", "BOOLEAN"),
    *("STRUCT<a: INT, b: INT>", "ARRAY<INT>", "ARRAY<STRING>"),
)
NULLS, INTEGERS = "null and a missing field", "ints and longs"
# What names a difference.
NAMED = {
    "the types of numbers": (int, float, Int64, Decimal128),
    "zeros at the end of decimals": (Decimal128,),
    "subtypes": (bytes, Binary),
    "the order of fields": (dict,),
    INTEGERS: (int, Int64),
}


def alike(**properties: str) -> tuple[TableSchema, list[tuple[Any, Any]]]:
    """The table of a collection, and pairs of values that its rows have in one way."""
    config = resolve({"mongodb.connection.string": "mongodb://h/", "topic.prefix": "t", **properties})
    documents = Documents(config)
    table = documents.schema(TableId("shop", "", "docs", DATABASE_TABLE))
    given = [{"_id": 1} if each is MISSING else {"_id": 1, "v": each} for each in VALUES.values()]
    raw = values_of([bson.encode(each) for each in given])
    rows = native_rows(table, documents.images(table, raw, documents.keys(raw)))
    columns = [rows.field(place) for place, each in enumerate(table.columns) if each.name not in table.key]
    found = defaultdict(list)
    for value, each in zip(VALUES.values(), row_hashes(columns, len(rows), signed=True), strict=True):
        found[int(each)].append(value)
    return table, [pair for some in found.values() for pair in combinations(some, 2)]


def is_named(pair: tuple[Any, Any], said: str) -> bool:
    if None in pair and MISSING in pair:
        return NULLS in said
    if "what is no string" in said and not all(isinstance(each, str) for each in pair):
        return True
    return any(words in said and all(isinstance(each, kinds) for each in pair) for words, kinds in NAMED.items())


@pytest.mark.parametrize("mode", ["strict", "relaxed", "extended"])
def test_documents(mode: str) -> None:
    table, pairs = alike(**{"json.serialization.mode": mode})
    said = table.column("document").configured
    assert (said is not None) == bool(pairs)
    assert all(is_named(pair, said or "") for pair in pairs), pairs


@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("texts", [{}, {"column.out.of.range.text": r"shop\.docs\.v"}], ids=["types", "texts"])
def test_declared_columns(kind: str, texts: dict[str, str]) -> None:
    table, pairs = alike(**{"document.columns": rf"shop\.docs: v {kind}", **texts})
    assert pairs
    said = " ".join(each.configured or "" for each in table.columns)
    assert all(is_named(pair, said) for pair in pairs), [pair for pair in pairs if not is_named(pair, said)]


def test_excluded_fields_are_named() -> None:
    table, pairs = alike(**{"field.exclude.list": "shop.docs.v"})
    assert pairs
    assert "the excluded fields v" in str(table.column("document").configured)


NO_VALUES = (
    *('{"$oid": "zz"}', '{"$oid": 5}', '{"$numberDecimal": "x"}', '{"$date": {"$numberLong": "99999999999999999999"}}'),
    *('{"$date": 1e400}', '{"$binary": "x"}', '{"$uuid": 5}', '{"$timestamp": 5}', '{"$code": 5}', '{"$minKey": 2}'),
    *("123456789012345678901234567890", '"\\ud800"', '{"a\\u0000": 1}', "[" * 5000, "", "nul", '{"$dbPointer": 5}'),
)


@pytest.mark.parametrize("text", NO_VALUES, ids=lambda text: text[:20])
def test_a_text_that_is_no_value_is_told(text: str) -> None:
    """Rows that somebody else put into a replica may have any text as their key."""
    with pytest.raises(ValueError):  # noqa: PT011  # whatever json says
        value_of(text)
