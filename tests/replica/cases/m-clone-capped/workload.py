"""Collections that are filled by cloneCollectionAsCapped: while stopped, while it runs, and before a rename."""


def setup(client):
    client.shop.t.insert_many([{"_id": i} for i in range(5)])


def run(client):
    client.shop.t.insert_one({"_id": 6})
    yield "wait"
    yield "stop"
    client.shop.command("cloneCollectionAsCapped", "t", toCollection="cc", size=100000)
    client.shop.cc.insert_one({"_id": 10})
    yield "start"
    client.shop.cc.insert_one({"_id": 11})
    yield "check"
    client.shop.command("cloneCollectionAsCapped", "t", toCollection="c2", size=100000)
    client.shop.c2.insert_one({"_id": 10})
    client.shop.c2.rename("c3")
    yield "check"
