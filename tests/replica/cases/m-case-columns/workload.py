"""Declared columns beside fields that differ by case, and fields named like the replica's own columns."""


def setup(client):
    client.shop.t.insert_many(
        [
            {"_id": 1, "price": 1.5, "Price": 2.5, "PRICE": 3},
            {"_id": 2, "name": "n", "Name": "N"},
            {"_id": 3, "id": 5, "_rest": 7, "_key": 8, "document": 9},
        ]
    )


def run(client):
    client.shop.t.update_many({}, {"$set": {"pRice": 4}})
    client.shop.t.insert_one({"_id": 4, "Price": 1})
    yield "wait"
