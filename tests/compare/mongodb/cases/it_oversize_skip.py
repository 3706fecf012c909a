"""Events that are skipped, as they are larger than a limit of the connector."""

from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "collection.include.list": "db1.large",
    "capture.mode": "change_streams_update_full",
    "cursor.oversize.handling.mode": "skip",
    "cursor.oversize.skip.threshold": "60",
}


def setup(client: Any) -> None:
    client.db1.large.insert_many([{"_id": 0, "text": "x" * 100}, {"_id": 1}])


def run(client: Any) -> Iterator[str]:
    for length in (1, 10, 20, 24, 25, 26, 30, 34, 35, 36, 40, 60, 100):
        client.db1.large.insert_one({"_id": length + 100, "t": "a" * length})
    yield "wait"
    client.db1.large.update_one({"_id": 1}, {"$set": {"t": "b" * 100}})
    yield "wait"
    client.db1.large.update_one({"_id": 1}, {"$set": {"t": "b"}})
    yield "wait"
    client.db1.large.delete_many({})
