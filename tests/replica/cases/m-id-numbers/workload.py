"""Numbers in `_id` that are equal and of other types: int, long, double, decimal, -0."""

from bson import Decimal128, Int64


def setup(client):
    client.shop.n.insert_many(
        [{"_id": 1, "v": "int"}, {"_id": 2, "v": "int"}, {"_id": 3, "v": "int"}, {"_id": 0, "v": "zero"}]
    )


def run(client):
    client.shop.n.delete_one({"_id": 1})
    client.shop.n.insert_one({"_id": 1.0, "v": "double"})
    client.shop.n.delete_one({"_id": 2})
    client.shop.n.insert_one({"_id": Int64(2), "v": "long"})
    client.shop.n.delete_one({"_id": 3})
    client.shop.n.insert_one({"_id": Decimal128("3.0"), "v": "dec"})
    client.shop.n.delete_one({"_id": 0})
    client.shop.n.insert_one({"_id": -0.0, "v": "minus zero"})
    client.shop.n.update_one({"_id": 2}, {"$set": {"u": 1}})
    client.shop.n.replace_one({"_id": 1}, {"_id": 1, "v": "replaced"})
    yield "wait"
    client.shop.n.delete_many({})
    yield "wait"
