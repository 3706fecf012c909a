"""Updates without the whole document (`capture.mode=oplog`)."""


def setup(client):
    client.shop.a.insert_many([{"_id": i, "v": 0} for i in range(4)])


def run(client):
    client.shop.a.insert_one({"_id": 9, "v": 0})
    client.shop.a.update_one({"_id": 1}, {"$set": {"v": 1}})
    yield "wait"
