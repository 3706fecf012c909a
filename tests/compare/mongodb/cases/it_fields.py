"""Excluded fields: nested, in arrays of documents and of arrays, below numbered places, parents that go."""

from collections.abc import Iterator
from typing import Any

from bson import ObjectId

PROPERTIES = {
    "capture.mode": "change_streams_update_full_with_pre_image",
    "collection.include.list": "dbA.c1,dbA.c2",
    "field.exclude.list": "  *.c1.name , dbA.c1.active,*.c1.address.number,dbA.c1.missing,dbA.c1.address.missing,"
    "*.c1.addresses.number,dbA.c1.people.address.street,dbA.c1.gone.deep.er",
    "schema.name.adjustment.mode": "avro",
}


def documents(one: object) -> dict[str, object]:
    return {
        "_id": one,
        "name": "Sally",
        "phone": 123,
        "active": True,
        "scores": [1.2, 3.4, 5.6],
        "address": {"number": 34, "street": "Claude Debussylaan", "city": "Amsterdam"},
        "addresses": [
            {"number": 34, "street": "Claude Debussylaan"},
            {"number": 7, "street": "Fragkokklisias", "city": "Athens"},
        ],
        "matrix": [[{"number": 34, "street": "a"}], [{"number": 7}, {"number": None}]],
        "people": [{"address": {"street": "x", "n": 1}}, {"address": [{"street": "y", "n": 2}]}],
        "gone": {"deep": {"er": 1, "est": 2}},
        "field-with-dash": 1,
    }


def setup(client: Any) -> None:
    for name in ("c1", "c2"):
        client.dbA.create_collection(name, changeStreamPreAndPostImages={"enabled": True})
        client.dbA[name].insert_one(documents(1))


def run(client: Any) -> Iterator[str]:
    one = client.dbA.c1
    for collection in (one, client.dbA.c2):
        collection.insert_one(documents(2))
        collection.insert_one({"_id": ObjectId("5f1a2b3c4d5e6f7a8b9c0d00"), "name": "only"})
    yield "wait"
    for change in (
        {"$set": {"name": "Mary", "phone": 456}},
        {"$set": {"name": "Only"}},
        {"$unset": {"name": "", "missing": ""}},
        {"$set": {"address.number": 36}},
        {"$set": {"address.number": 37, "address.street": "b"}},
        {"$unset": {"address.number": ""}},
        {"$set": {"address": {"number": 1, "street": "c"}}},
        {"$set": {"addresses.0.number": 2, "addresses.0.street": "d"}},
        {"$unset": {"addresses.1.number": ""}},
        {"$push": {"addresses": {"number": 3, "street": "e"}}},
        {"$set": {"addresses.1": {"number": 4}}},
        {"$set": {"addresses": [{"number": 9}, [{"number": 10}], 5]}},
        {"$set": {"matrix.0.0.number": 5}},
        {"$set": {"matrix.1": [{"number": 6}]}},
        {"$set": {"people.0.address.street": "f", "people.1.address.0.street": "g"}},
        {"$set": {"people.0.address": {"street": "h", "n": 3}}},
        {"$unset": {"people.0.address.street": "", "people.1.address.0.street": ""}},
        {"$set": {"gone.deep.er": 5}},
        {"$unset": {"gone.deep": ""}},
        {"$unset": {"gone": ""}},
        {"$set": {"active": False, "field-with-dash": 2}},
        {"$set": {"name": {"first": "a"}, "active": [1]}},
        {"$set": {"name.first": "b", "active.0": 2}},
        {"$unset": {"address": "", "scores": ""}},
        [{"$replaceWith": {"_id": 1, "name": "n", "address": {"number": 1}}}],
    ):
        one.update_one({"_id": 1}, change)
        yield "wait"
    one.replace_one({"_id": 2}, {"name": "Replaced", "phone": 1, "addresses": [{"number": 1}]})
    yield "wait"
    one.delete_one({"_id": 1})
    client.dbA.c2.update_one({"_id": 1}, {"$set": {"name": "kept", "address.number": 1}})
    yield "wait"
    one.delete_one({"_id": 2})
