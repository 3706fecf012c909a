"""JSON in the notation of MongoDB's shell."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from bson import Decimal128, Int64, MinKey, ObjectId, Regex, Timestamp

from tailrace.connectors.mongodb.shell import loads

OID = ObjectId("5f1a2b3c4d5e6f7a8b9c0d1e")
DAY = datetime(2024, 1, 2)  # the driver gives UTC without saying so


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": {"$gt": 1}}', {"a": {"$gt": 1}}),
        (
            ' { $or: [ { cuisine: "American "}, { "grades.grade": \'Z\' } ] } ',
            {"$or": [{"cuisine": "American "}, {"grades.grade": "Z"}]},
        ),
        ("{}", {}),
        ("[]", []),
        ("{ a : -1.5e3, b: true, c: null, }", {"a": -1500.0, "b": True, "c": None}),
        (r"{ a: 'it\'s \u00fc\n' }", {"a": "it's ü\n"}),
        (f'{{ _id: ObjectId("{OID}") }}', {"_id": OID}),
        (f'{{ _id: {{ $oid: "{OID}" }} }}', {"_id": OID}),
        ('{ a: ISODate("2024-01-02T00:00:00Z"), b: new Date(1704153600000) }', {"a": DAY, "b": DAY}),
        (
            "{ a: NumberLong(5), b: NumberLong('6'), c: NumberDecimal('1.5') }",
            {"a": Int64(5), "b": Int64(6), "c": Decimal128("1.5")},
        ),
        ("{ a: Timestamp(5, 6), b: MinKey, c: MinKey() }", {"a": Timestamp(5, 6), "b": MinKey(), "c": MinKey()}),
        ("{ a: -Infinity }", {"a": float("-inf")}),
    ],
)
def test_notations(text: str, value: Any) -> None:
    assert loads(text) == value


def test_patterns() -> None:
    assert loads(r"{ a: /^x\/y/i }") == {"a": Regex("^x/y", re.IGNORECASE)}


@pytest.mark.parametrize(
    "text", ["", "(no)", "{", "{a}", "{a: 1", "{a: b}", "{a: 1} x", "{a: ObjectId(1, 2)}", "{a 1}", "{: 1}"]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"unexpected|missing|expected|early|arguments"):
        loads(text)
