"""A change stream of one collection."""

from collections.abc import Iterator
from typing import Any

from tests.compare.mongodb.cases import it_lists

PROPERTIES = {
    "capture.scope": "collection",
    "capture.target": "dbit.c",
    "collection.include.list": "dbit.c",
    "skipped.operations": "u",
}


def setup(client: Any) -> None:
    it_lists.setup(client)


def run(client: Any) -> Iterator[str]:
    for name in ("c", "exc1"):
        collection = client.dbit[name]
        collection.insert_one({"_id": 5, "v": 1})
        collection.update_one({"_id": 1}, {"$set": {"v": 1}})
        collection.replace_one({"_id": 2}, {"w": 1})
        collection.delete_one({"_id": 1})
    yield "stop"
    client.dbit.c.insert_one({"_id": 6})
    yield "start"
    client.dbit.c.insert_one({"_id": 7})
