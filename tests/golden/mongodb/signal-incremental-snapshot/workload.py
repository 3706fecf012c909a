"""An incremental snapshot by a signal document."""


def setup(client):
    client.inventory.customers.insert_many([{"_id": number, "name": f"customer {number}"} for number in range(1, 6)])
    client.inventory.create_collection("signals")


def run(client):
    client.inventory.signals.insert_one(
        {
            "_id": "ad-hoc-1",
            "type": "execute-snapshot",
            "data": {"data-collections": ["inventory.customers"], "type": "incremental"},
        }
    )
    yield "wait"
    client.inventory.customers.insert_one({"_id": 6, "name": "streamed"})
