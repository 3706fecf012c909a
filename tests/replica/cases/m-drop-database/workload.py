"""The database is dropped, and its collection begins again."""


def setup(client):
    client.shop.orders.insert_many([{"_id": i, "v": i} for i in range(3)])


def run(client):
    client.shop.orders.insert_one({"_id": 5, "v": 5})
    yield "wait"
    client.drop_database("shop")
    yield "wait"
    client.shop.orders.insert_one({"_id": 1, "v": "new"})
    yield "wait"
