"""Documents, updates of all kinds, deletes and a transaction."""

import datetime

from bson import Binary, Decimal128, Int64, ObjectId

PLAIN = {"_id": 1, "s": "é", "d": 2.5, "n": None, "l": Int64(2**40), "a": [1, "x", {"k": []}], "o": {"b": True}}


def setup(client):
    client.inventory.create_collection("things", changeStreamPreAndPostImages={"enabled": True})
    client.inventory.things.insert_one(PLAIN)


def run(client):
    things = client.inventory.things
    things.insert_one({"_id": ObjectId("596e275826f08b2730779e1f"), "when": datetime.datetime(2020, 1, 2, 3, 4, 5)})
    things.insert_one({"_id": "text", "bin": Binary(b"\x00\xff"), "dec": Decimal128("1.50")})
    things.insert_one({"_id": {"a": 1, "b": "c"}})
    things.update_one({"_id": 1}, {"$set": {"s": "new", "o.c": [1, 2, 3]}, "$unset": {"n": ""}})
    things.update_one({"_id": 1}, {"$push": {"o.c": {"$each": [], "$slice": 1}}})
    things.replace_one({"_id": "text"}, {"only": 1})
    things.delete_one({"_id": 1})
    with client.start_session() as session, session.start_transaction():
        things.insert_one({"_id": 5}, session=session)
        things.delete_one({"_id": "text"}, session=session)
    yield "wait"
