"""A collection is renamed into another database, which copies it; one moves over another."""


def setup(client):
    client.shop.orders.insert_many([{"_id": i, "v": i} for i in range(3)])
    client.shop.stock.insert_one({"_id": 1})
    client.other.stock.insert_one({"_id": 2})


def run(client):
    client.admin.command({"renameCollection": "shop.orders", "to": "other.orders"})
    client.admin.command({"renameCollection": "shop.stock", "to": "other.stock", "dropTarget": True})
    yield "wait"
    client.other.orders.insert_one({"_id": 9})
    yield "wait"
