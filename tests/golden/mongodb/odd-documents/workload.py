"""Documents in no order of their keys, odd binaries, dates beyond the year 9999, and an excluded database."""

from bson import Binary, DatetimeMS, Int64

DISTANT = 253402300800012


def setup(client):
    client.inventory.docs.insert_many([{"_id": DatetimeMS(DISTANT), "data": Binary(b"x", 200)}, {"_id": 13}])


def run(client):
    docs = client.inventory.docs
    docs.insert_one({"_id": Binary(b"y", 250), "n": Int64(1)})
    client.other.docs.insert_one({"_id": 1})
    yield "stop"
    docs.insert_one({"_id": DatetimeMS(DISTANT + 1), "at": DatetimeMS(-(2**53))})
    docs.update_one({"_id": 13}, {"$set": {"data": Binary(b"z", 255)}})
    yield "start"
