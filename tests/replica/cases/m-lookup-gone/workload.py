"""Documents that are gone, or there again, when an update is looked up."""


def setup(client):
    client.shop.a.insert_many([{"_id": i, "v": 0} for i in range(4)])
    client.shop.b.insert_many([{"_id": i, "v": 0} for i in range(4)])


def run(client):
    client.shop.a.insert_one({"_id": 9})
    yield "stop"
    client.shop.a.update_one({"_id": 1}, {"$set": {"v": 1}})
    client.shop.a.delete_one({"_id": 1})
    client.shop.a.update_one({"_id": 2}, {"$set": {"v": 1}})
    client.shop.a.delete_one({"_id": 2})
    client.shop.a.insert_one({"_id": 2, "v": "again"})
    client.shop.b.update_one({"_id": 1}, {"$set": {"v": 1}})
    client.shop.b.drop()
    yield "start"
    yield "wait"
