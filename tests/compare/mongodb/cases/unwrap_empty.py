"""Empty arrays and documents, nulls in arrays and arrays of arrays, in rows by ExtractNewDocumentState."""

from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "database.include.list": "inventory",
    "transforms": "plain,documents",
    "transforms.plain.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    "transforms.plain.add.fields": "op,transaction",
    "transforms.plain.predicate": "plain",
    "transforms.documents.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    "transforms.documents.array.encoding": "document",
    "transforms.documents.predicate": "plain",
    "transforms.documents.negate": "true",
    "predicates": "plain",
    "predicates.plain.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.plain.pattern": ".*plain",
}
DOCUMENTS = [
    {"_id": 1, "nulls": [{"a": 1}, None, {"b": "x"}], "rows": [[1, 2], [], [3]], "lists": [[{"x": {"y": 1}}]]},
    {"_id": 2, "docs": [], "plain": [], "own": {"own": [], "empty": {}}},
]
IN_DOCUMENTS = [*DOCUMENTS[1:], {"_id": 3, "items": [{"e": [], "d": {}, "x": {"d": {}, "e": []}}, {"a": [1, "x"]}]}]


def setup(client: Any) -> None:
    client.inventory.plain.insert_many(DOCUMENTS)


def run(client: Any) -> Iterator[str]:
    client.inventory.docs.insert_many(IN_DOCUMENTS)
    yield "wait"
    client.inventory.plain.update_one({"_id": 2}, {"$set": {"more": [None, [2], []]}, "$unset": {"docs": ""}})
    yield "wait"
