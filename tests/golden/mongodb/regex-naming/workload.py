"""Two collections of one topic, and one of a topic of its own."""


def setup(client):
    client.shop.orders_1.insert_one({"_id": 1, "n": 1})
    client.shop.people.insert_one({"_id": "x", "n": 2})


def run(client):
    client.shop.orders_1.insert_one({"_id": 2, "n": 1})
    yield "wait"
    client.shop.orders_2.insert_one({"_id": 2, "n": 2})
    yield "wait"
    client.shop.orders_1.delete_one({"_id": 2})
    client.shop.people.delete_one({"_id": "x"})
