"""The types and keys that `verify` tries on MongoDB: value, and what a document in an event has of it."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from tailrace.connectors.probe import KeyCase, TypeCase

# ruff: noqa: RUF001
_OBJECT = ObjectId("0123456789abcdef01234567")
_COMMON = (
    TypeCase("null", "null", None, None),
    TypeCase("boolean", "bool", True, True),
    TypeCase("int_min", "int", -2147483648, -2147483648),
    TypeCase("long_max", "long", Int64(9223372036854775807), {"$numberLong": "9223372036854775807"}),
    TypeCase("double", "double", 1.5, 1.5),
    TypeCase("double_max", "double", 1.7976931348623157e308, 1.7976931348623157e308),
    TypeCase("double_nan", "double", float("nan"), "NaN"),
    TypeCase("double_infinite", "double", float("-inf"), "-Infinity"),
    TypeCase("double_zero", "double", -0.0, -0.0),
    TypeCase(
        "decimal",
        "decimal",
        Decimal128(Decimal("-1234567890.0123456789")),
        {"$numberDecimal": "-1234567890.0123456789"},
    ),
    TypeCase("decimal_nan", "decimal", Decimal128("NaN"), {"$numberDecimal": "NaN"}),
    TypeCase("string", "string", 'Žluťoučký Жук İı 漢字 🐘 \u0000 \\"', 'Žluťoučký Жук İı 漢字 🐘 \x00 \\"'),
    TypeCase("string_empty", "string", "", ""),
    TypeCase("object_id", "objectId", _OBJECT, {"$oid": "0123456789abcdef01234567"}),
    TypeCase("date_first", "date", datetime(1, 1, 1, tzinfo=timezone.utc), {"$date": -62135596800000}),
    TypeCase(
        "date_last", "date", datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc), {"$date": 253402300799999}
    ),
    TypeCase("timestamp", "timestamp", Timestamp(4294967295, 1), {"$timestamp": {"t": 4294967295, "i": 1}}),
    TypeCase("binary", "binData", Binary(b"\x00\xff", 0), {"$binary": "AP8=", "$type": "00"}),
    TypeCase("uuid", "binData", Binary(bytes(range(16)), 4), {"$binary": "AAECAwQFBgcICQoLDA0ODw==", "$type": "04"}),
    TypeCase("regex", "regex", Regex("^a.*/", "im"), {"$regex": "^a.*/", "$options": "im"}),
    TypeCase("code", "javascript", Code("return 1"), {"$code": "return 1"}),
    TypeCase("min_key", "minKey", MinKey(), {"$minKey": 1}),
    TypeCase("max_key", "maxKey", MaxKey(), {"$maxKey": 1}),
    TypeCase(
        "reference", "object", DBRef("other", _OBJECT), {"$ref": "other", "$id": {"$oid": "0123456789abcdef01234567"}}
    ),
    TypeCase("array", "array", [1, None, [2, {"a": "b"}], {}], [1, None, [2, {"a": "b"}], {}]),
    TypeCase("dotted", "object", {"a.b": 1, "$c": 2, "": 3}, {"a.b": 1, "$c": 2, "": 3}),
)
TYPES = {"common": _COMMON}
KEYS = (
    KeyCase("text", "", ("a", "B", "b", "ä", "z", "Ж", "ж")),
    KeyCase("turkish_text", "tr", ("I", "i", "ı2", "İ2", "ş", "z")),
    KeyCase("of_several_types", "", (1, 2.5, "a", _OBJECT, datetime(2020, 1, 1, tzinfo=timezone.utc), {"a": 1}, True)),
)
