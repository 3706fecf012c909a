"""Two signals, the first with a surrogate-key."""


def setup(client):
    client.shop.people.insert_many([{"_id": number, "n": 10 - number} for number in range(3)])
    client.shop.create_collection("signals")


def run(client):
    data = {"data-collections": ["shop.people"], "type": "incremental"}
    client.shop.signals.insert_one({"_id": "s1", "type": "execute-snapshot", "data": {**data, "surrogate-key": "n"}})
    yield "wait"
    client.shop.signals.insert_one({"_id": "s2", "type": "execute-snapshot", "data": data})
    yield "wait"
    client.shop.people.insert_one({"_id": 9})
