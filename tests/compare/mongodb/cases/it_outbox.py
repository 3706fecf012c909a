"""The outbox: schema versions, timestamps, headers and envelopes, empty payloads, ids of several types."""

from collections.abc import Iterator
from typing import Any

from bson import Int64, ObjectId

PROPERTIES = {
    "collection.include.list": "db.outbox",
    "transforms": "outbox",
    "transforms.outbox.type": "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter",
    "transforms.outbox.collection.field.event.schema.version": "version",
    "transforms.outbox.collection.field.event.timestamp": "createdat",
    "transforms.outbox.collection.fields.additional.placement": "version:envelope:eventVersion,"
    "aggregatetype:envelope:aggregateType,somebooltype:envelope:someBoolType,somebooltype:header,is_deleted:envelope:deleted",
}


def row(id_: object, payload: object, **more: object) -> dict[str, object]:
    return {
        "_id": id_,
        "aggregateid": Int64(123),
        "aggregatetype": "Order",
        "type": "OrderCreated",
        "somebooltype": True,
        "version": 2,
        "createdat": Int64(12342452512),
        "is_deleted": False,
        "payload": payload,
        **more,
    }


def setup(client: Any) -> None:
    client.db.create_collection("outbox")


def run(client: Any) -> Iterator[str]:
    box = client.db.outbox
    id_ = ObjectId("000000000000000000000000")
    box.insert_one(row(ObjectId("1" * 24), {"_id": id_, "fullName": "John Doe", "asset": Int64(100000)}))
    box.insert_one(row(2, {"age": 42, "pets": ["dog", "cat"]}, aggregateid="text"))
    box.insert_one(row("three", None))
    box.insert_one(row(4, {}, somebooltype=False, version=3))
    yield "wait"
    box.update_one({"_id": 4}, {"$set": {"version": 4}})
    box.delete_many({})
