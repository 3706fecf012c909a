"""Documents as rows: nested documents and arrays, types of numbers, names."""

import datetime

from bson import Binary, Decimal128, Int64, ObjectId


def setup(client):
    client.inventory.things.insert_one({"_id": 1, "s": "é", "n": 1, "o": {"b": True, "x": {"y": 1.5}}})


def run(client):
    things = client.inventory.things
    things.insert_one({"_id": ObjectId("596e275826f08b2730779e1f"), "when": datetime.datetime(2020, 1, 2, 3, 4, 5)})
    things.insert_one({"_id": "text", "bin": Binary(b"\x00\xff"), "dec": Decimal128("1.50"), "l": Int64(2**40)})
    things.insert_one({"_id": 4, "a": [1, 2, 3], "t": ["x", None], "r": [{"k": 1}, {"k": 2, "m": "z"}]})
    things.update_one({"_id": 1}, {"$set": {"s": "new", "o.c": 7}})
    yield "wait"
    things.delete_one({"_id": 1})
    yield "wait"
