"""DBRefs, deep nesting, odd field names, documents of every BSON type, in all that an event has."""

from collections.abc import Iterator
from typing import Any

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.datetime_ms import DatetimeMS

PROPERTIES = {"capture.mode": "change_streams_update_full_with_pre_image", "topic.prefix": "mongo.1"}
OID = ObjectId("5f1a2b3c4d5e6f7a8b9c0d1e")
EVERYTHING = {
    "double": 1.5,
    "whole": 3.0,
    "huge": 1e300,
    "tiny": 4.9e-324,
    "negative zero": -0.0,
    "string": 'quote " back \\ slash / é 🎉 \u0000 \u001f \u2028',
    "document": {"a": {"b": {"c": {}}}},
    "array": [1, [2, [3, {"a": []}]], None],
    "binary": b"\x00\x01",
    "uuid": Binary(b"0123456789abcdef", 4),
    "old uuid": Binary(b"0123456789abcdef", 3),
    "user": Binary(b"", 128),
    "oid": OID,
    "true": True,
    "date": DatetimeMS(0),
    "early": DatetimeMS(-62135596800001),
    "late": DatetimeMS(253402300800000),
    "null": None,
    "regex": Regex('a/b"', "imx"),
    "code": Code('function() { return "x"; }'),
    "scope": Code("x", {"y": 1}),
    "int": 2147483647,
    "time": Timestamp(4294967295, 4294967295),
    "long": Int64(9007199254740993),
    "negative": Int64(-1),
    "decimal": Decimal128("1.50E+10"),
    "nan": Decimal128("NaN"),
    "inf": Decimal128("-Infinity"),
    "min": MinKey(),
    "max": MaxKey(),
    "ref": DBRef("orders", OID),
    "ref2": DBRef("orders", 5, "other", extra=1),
    "": "empty name",
    "dotted.name": 1,
    "$dollar": 2,
    "_id2": 3,
}


def setup(client: Any) -> None:
    client.inventory.create_collection("docs", changeStreamPreAndPostImages={"enabled": True})
    client.inventory.docs.insert_one({"_id": 0, **EVERYTHING})
    for number, key in enumerate(
        (
            OID,
            'text "q"',
            1.5,
            Int64(7),
            Decimal128("2.5"),
            DatetimeMS(1500000000123),
            b"\x01\x02",
            True,
            None,
            {"a": 1, "b": {"c": "d"}},
            Timestamp(1, 2),
            Binary(b"0123456789abcdef", 4),
            MinKey(),
        )
    ):
        client.inventory.keys.insert_one({"_id": key, "n": number})


def run(client: Any) -> Iterator[str]:
    docs, keys = client.inventory.docs, client.inventory.keys
    docs.insert_one({"_id": 1, **EVERYTHING})
    yield "wait"
    for name, value in EVERYTHING.items():
        if name and "." not in name and not name.startswith("$"):
            docs.update_one({"_id": 0}, {"$set": {f"new.{name}": value}})
            yield "wait"
    docs.update_one(
        {"_id": 1},
        {"$unset": {name: "" for name in EVERYTHING if name and "." not in name and not name.startswith("$")}},
    )
    yield "wait"
    docs.replace_one({"_id": 1}, {"ref": DBRef("x", "y"), "list": [DBRef("a", OID)]})
    yield "wait"
    keys.update_many({}, {"$inc": {"n": 100}})
    yield "wait"
    keys.delete_many({})
    docs.delete_many({})
