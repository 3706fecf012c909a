"""Incremental snapshots: conditions, keys of one type each, a stop, expressions, unknown signals; notifications."""

from collections.abc import Iterator
from typing import Any

from bson import Int64, ObjectId

PROPERTIES = {
    "signal.data.collection": "db1.signals",
    "database.include.list": "db1",
    "incremental.snapshot.chunk.size": "3",
    "notification.enabled.channels": "sink",
    "notification.sink.topic.name": "notes",
}
COMPARE = {"settle_seconds": 3, "unordered_reads": True, "any_snapshot_order": True}


def setup(client: Any) -> None:
    db = client.db1
    db.numbers.insert_many([{"_id": number, "v": number % 2} for number in range(1, 8)])
    db.texts.insert_many([{"_id": text, "v": 1} for text in ("a", "B", "c d", "é", "")])
    db.oids.insert_many([{"_id": ObjectId(f"5f1a2b3c4d5e6f7a8b9c0d{number:02x}"), "v": 1} for number in range(4)])
    db.longs.insert_many([{"_id": Int64(number * 10**12), "v": 1} for number in range(4)])
    db.create_collection("signals")
    db.create_collection("empty")


def run(client: Any) -> Iterator[str]:
    db = client.db1
    signals = (
        ("execute-snapshot", {"data-collections": ["db1.numbers", "db1.texts"]}),
        ("execute-snapshot", {"data-collections": ["db1.oids", "db1.empty", "db1.absent"], "type": "incremental"}),
        ("execute-snapshot", {"data-collections": ["db1.longs"]}),
        (
            "execute-snapshot",
            {
                "data-collections": ["db1.numbers"],
                "additional-conditions": [{"data-collection": "db1.numbers", "filter": "{ v: 1 }"}],
            },
        ),
        (
            "execute-snapshot",
            {
                "data-collections": ["db1.numbers"],
                "type": "blocking",
                "additional-conditions": [{"data-collection": "db1.numbers", "filter": "{ v: 0 }"}],
            },
        ),
        ("execute-snapshot", {"data-collections": ["db1[.](texts|oids)"]}),
        ("stop-snapshot", {"type": "incremental"}),
        ("unknown", {"a": 1}),
        ("execute-snapshot", {"data-collections": ["other.docs"]}),
        ("execute-snapshot", {"data-collections": ["db1.texts"], "type": "blocking"}),
    )
    for number, (kind, data) in enumerate(signals):
        db.signals.insert_one({"_id": f"s{number}", "type": kind, "data": data})
        yield "wait"
        db.numbers.update_one({"_id": 1}, {"$set": {"seen": number}})
