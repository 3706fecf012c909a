"""Signals: a part of a collection read again, by deleted window marks, beside a blocking snapshot of another part."""

import json
from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "database.include.list": "inventory",
    "signal.data.collection": "inventory.signals",
    "incremental.snapshot.chunk.size": "2",
    "incremental.snapshot.watermarking.strategy": "insert_delete",
    "notification.enabled.channels": "sink",
    "notification.sink.topic.name": "notes",
    "snapshot.mode": "no_data",
}
COMPARE = {"settle_seconds": 6, "unordered_reads": True, "any_snapshot_order": True}


def _signal(client: Any, name: str, kind: str, data: Any) -> None:
    client.inventory.signals.insert_one({"_id": name, "type": kind, "data": json.dumps(data)})


def setup(client: Any) -> None:
    client.inventory.create_collection("signals")
    client.inventory.docs.insert_many([{"_id": number, "even": number % 2 == 0} for number in range(1, 8)])
    client.inventory.more.insert_many([{"_id": str(number)} for number in range(3)])
    client.inventory.create_collection("empty")


def run(client: Any) -> Iterator[str]:
    client.inventory.docs.insert_one({"_id": 100, "even": True})
    client.inventory.more.insert_one({"_id": "9"})
    yield "wait"
    condition = {"data-collection": "inventory.docs", "filter": '{"even": true}'}
    _signal(
        client,
        "a",
        "execute-snapshot",
        {
            "data-collections": ["inventory.docs", "inventory.more", "inventory.empty"],
            "type": "INCREMENTAL",
            "additional-conditions": [condition],
        },
    )
    yield "wait"
    _signal(
        client,
        "b",
        "execute-snapshot",
        {"data-collections": ["inventory.docs"], "type": "BLOCKING", "additional-conditions": [condition]},
    )
    yield "wait"
