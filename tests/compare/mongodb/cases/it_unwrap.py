"""Rows of nested documents, matrices, DBRefs, odd names, ids of all types, with metadata that is not there."""

import datetime
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from bson import DBRef, Decimal128, Int64, ObjectId
from bson.binary import Binary, UuidRepresentation

PROPERTIES = {
    "capture.mode": "change_streams_update_full",
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    "transforms.unwrap.array.encoding": "array",
    "transforms.unwrap.delete.tombstone.handling.mode": "tombstone",
    "transforms.unwrap.add.headers": "op,id,source.collection,source.rs,updateDescription.updatedFields,nonexistent",
    "transforms.unwrap.add.headers.prefix": "prefix.",
    "transforms.unwrap.add.fields": "op , id,source.collection",
    "transforms.unwrap.field.name.adjustment.mode": "avro",
}
OID = ObjectId("5f1a2b3c4d5e6f7a8b9c0d00")
DOCUMENTS = (
    {"_id": 1, "dataStr": "hello", "dataInt": 123, "dataLong": Int64(80000000000), "dataBool": True, "n": None},
    {"_id": 2, "data": DBRef("a2", 4, "b2"), "plain": DBRef("a2", OID)},
    {"_id": 3, "metric": {"open.ing": 1, "a-b": {"1c": 2, "$d": 3}}, "x y": [{"p.q": 1}], "0": "zero"},
    {"_id": 4, "empty": [], "none": {}},
    {"_id": OID, "phone": Int64(123), "active": True, "scores": [1.2, 3.4, 5.6]},
    {"_id": {"company": 32, "dept": "home improvement"}, "name": "Sally"},
    {"_id": "text", "when": datetime.datetime(2020, 1, 2, 3, 4, 5), "dec": Decimal128("1.50"), "bin": Binary(b"\1")},
    {"_id": Int64(9), "matrix": [[1, 2, 3], [4, 5, 6], [7, 8]]},
    {"_id": 10.5, "f": [{"k1": "v1", "k2": 1, "k3": [{"k4": [1, 2]}]}, {"k1": "v2", "k2": 2, "k3": [{"k4": [3]}]}]},
    {"_id": True, "same": [{"a": 1}, {"a": 2}]},
    {"_id": datetime.datetime(2020, 1, 2), "a": {"b": {"c": {"d": [{"e": {"f": 1}}]}}}},
    {"_id": Binary.from_uuid(UUID(int=1), UuidRepresentation.STANDARD), "op": "c", "after": {"x": 1}},
)


def setup(client: Any) -> None:
    client.db1.a.insert_many(DOCUMENTS[:3])


def run(client: Any) -> Iterator[str]:
    client.db1.a.insert_many(DOCUMENTS[3:])
    yield "wait"
    for change in (
        {"$set": {"dataStr": "bye"}},
        {"$set": {"newStr": "hello", "dataInt": 456}},
        {"$unset": {"newStr": ""}},
        {"$set": {"nested": {"a": {"b": 1}}, "list": [{"a": 1}, {"a": 2}]}},
        {"$set": {"list.1.a": 3, "nested.a.c": "x"}},
        {"$unset": {"nested": "", "list": ""}},
    ):
        client.db1.a.update_one({"_id": 1}, change)
        yield "wait"
    client.db1.a.replace_one({"_id": 1}, {"dataStr": "Hi again"})
    yield "wait"
    client.db1.a.delete_many({})
