"""Only user-defined stages, where one leaves out the cluster time; lists of databases and skipped operations."""

from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "cursor.pipeline": '[{"$project": {"clusterTime": 0}},'
    ' {"$match": {"operationType": {"$in": ["insert", "update", "delete"]}}}]',
    "cursor.pipeline.order": "user_only",
    "database.include.list": "inventory",
    "collection.exclude.list": "other[.]secrets",
    "skipped.operations": "d",
    "field.exclude.list": "*.*.list.a",
}


def setup(client: Any) -> None:
    client.inventory.docs.insert_one({"_id": 1, "list": [{"a": 1, "b": 2}]})


def run(client: Any) -> Iterator[str]:
    for database in ("inventory", "other"):
        docs = client[database].docs
        docs.insert_one({"_id": 2, "list": [{"a": 1, "b": 2}], "nested": [[{"a": 1}]]})
        yield "wait"
        docs.update_one({"_id": 2}, {"$push": {"list": {"$each": [{"a": 3}, {"a": 4, "b": 5}, {"a": 6}]}}})
        yield "wait"
        docs.update_one({"_id": 2}, {"$set": {"list.0.a": 9, "nested.0.0.a": 7, "list.3": {"a": 1, "c": 2}}})
        yield "wait"
        docs.delete_one({"_id": 2})
        client[database].secrets.insert_one({"_id": 1})
        yield "wait"
