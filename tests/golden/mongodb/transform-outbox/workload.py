"""Outbox documents."""


def run(client):
    outbox = client.inventory.outbox
    outbox.insert_one(
        {
            "_id": "1",
            "aggregatetype": "Order",
            "aggregateid": "7",
            "type": "OrderCreated",
            "payload": {"id": 7, "lines": [1, 2]},
        }
    )
    outbox.delete_one({"_id": "1"})
