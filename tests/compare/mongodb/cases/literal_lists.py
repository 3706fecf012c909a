"""Lists of literal names, in another case and with blanks, a collection of signals, a transaction's block in rows."""

from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "filters.match.mode": "literal",
    "database.exclude.list": "other, nosuch",
    "collection.exclude.list": "inventory.Secrets, inventory.a+b ,inventory.x.y",
    "signal.data.collection": "inventory.signals",
    "provide.transaction.metadata": "true",
    "transforms": "unwrap,mark,label",
    "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    "transforms.unwrap.add.fields": "op,transaction.total_order:place,ord",
    "transforms.unwrap.add.headers": "op,source.collection,total_order",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
    "transforms.mark.type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms.mark.header": "version",
    "transforms.mark.value.literal": "1.0",
    "transforms.label.type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms.label.header": "since",
    "transforms.label.value.literal": "2026-01-01",
}
COMPARE = {"any_snapshot_order": True, "lost_ends": True}
NAMES = ("secrets", "Secrets", "a+b", "a-b", "x.y", "x.z")


def setup(client: Any) -> None:
    client.inventory.create_collection("signals")
    for name in NAMES:
        client.inventory[name].insert_one({"_id": 1, "name": name})
    client.other.docs.insert_one({"_id": 1})


def run(client: Any) -> Iterator[str]:
    for name in NAMES:
        client.inventory[name].insert_one({"_id": 2, "name": name})
        client.inventory[name].delete_one({"_id": 1})
    client.other.docs.insert_one({"_id": 2})
    client.inventory.signals.insert_one({"_id": "s", "type": "log", "data": {"message": "x"}})
    yield "wait"
    with client.start_session() as session, session.start_transaction():
        client.inventory["a-b"].insert_one({"_id": 5}, session=session)
        client.inventory["x.z"].update_one({"_id": 2}, {"$set": {"n": 1}}, session=session)
        client.inventory["x.y"].insert_one({"_id": 5}, session=session)
    yield "wait"
    client.inventory["a-b"].insert_one({"_id": 6})
    yield "wait"
