"""Documents as `_id` that look alike."""

import datetime

from bson import Decimal128


def setup(client):
    client.shop.k.insert_many(
        [
            {"_id": {"a": 1}},
            {"_id": {"a": "1"}},
            {"_id": {"a": 1, "b": 1}},
            {"_id": {"b": 1, "a": 1}},
            {"_id": {"a": {"x": 1}}},
            {"_id": '{"a": 1}'},
            {"_id": {"a": 1.5}},
            {"_id": {"q": Decimal128("1.5")}},
            {"_id": {"a": datetime.datetime(2024, 1, 1)}},
        ]
    )


def run(client):
    client.shop.k.insert_many([{"_id": 3}, {"_id": "3"}, {"_id": {"oid": "x"}}])
    client.shop.k.update_many({}, {"$set": {"v": 1}})
    yield "wait"
    client.shop.k.delete_one({"_id": {"a": 1, "b": 1}})
    client.shop.k.delete_one({"_id": "3"})
    client.shop.k.delete_one({"_id": {"a": "1"}})
    yield "wait"
