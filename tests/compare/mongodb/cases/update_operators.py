"""The update operators of fields and arrays, as rows by ExtractNewDocumentState."""

from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "capture.mode": "change_streams",
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    "transforms.unwrap.array.encoding": "document",
    "transforms.unwrap.add.fields": "op,updateDescription.updatedFields:set,"
    "updateDescription.removedFields:gone,updateDescription.truncatedArrays:cut",
    "transforms.unwrap.add.headers": "op,source.collection",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
}
FIRST = {
    "_id": 1,
    "a": 5,
    "b": "x",
    "c": [1, 2, 3, 4, 5, 6],
    "d": {"e": 1, "f": [{"g": 1, "h": 2}, {"g": 3, "h": 4}]},
    "m": [[1, 2], [3]],
    "n": 10,
}


def setup(client: Any) -> None:
    client.db1.docs.insert_one(FIRST)


def run(client: Any) -> Iterator[str]:
    docs = client.db1.docs
    changes: tuple[Any, ...] = (
        {"$inc": {"a": 1}},
        {"$mul": {"a": 2.5}},
        {"$rename": {"b": "bb"}},
        {"$set": {"d.e": None}},
        {"$set": {"d.f.0.g": 7}},
        {"$unset": {"d.e": ""}},
        {"$min": {"n": 1}},
        {"$max": {"n": 100}},
        {"$push": {"c": 7}},
        {"$push": {"c": {"$each": [8, 9], "$position": 0}}},
        {"$push": {"c": {"$each": [], "$slice": 3}}},
        {"$pop": {"c": -1}},
        {"$pull": {"c": 9}},
        {"$addToSet": {"c": "new"}},
        {"$set": {"c.5": "gap"}},
        {"$pullAll": {"c": [1, 2]}},
        {"$bit": {"n": {"and": 6}}},
        {"$set": {"d.f.$[].h": 0}},
        {"$push": {"m": [4]}},
        {"$set": {"m.0.1": 9}},
        {"$set": {"x": {}, "y": [], "z": {"a": {"b": 1}}}},
        {"$unset": {"x": "", "y": "", "z": ""}},
        {"$set": {"a b": 1, "a-c": 2, "1d": 3, "ü": 4}},
        {"$currentDate": {}},
        [{"$set": {"c": {"$slice": ["$c", 1]}}}],
        [{"$replaceWith": {"_id": 1, "whole": True}}],
    )
    for change in changes:
        if change != {"$currentDate": {}}:
            docs.update_one({"_id": 1}, change)
            yield "wait"
    docs.replace_one({"_id": 1}, {"r": 1})
    yield "wait"
    docs.find_one_and_update({"_id": 2}, {"$set": {"up": 1}, "$setOnInsert": {"s": 2}}, upsert=True)
    yield "wait"
    docs.delete_one({"_id": 1})
    docs.delete_one({"_id": 2})
