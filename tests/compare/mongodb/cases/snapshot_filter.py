"""A snapshot by filters of collections, in several databases, with names of other characters."""

from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "snapshot.collection.filter.overrides": "db1.docs,db2.odd-name",
    "snapshot.collection.filter.overrides.db1.docs": "{ _id: { $gt: 1 } }",
    "snapshot.collection.filter.overrides.db2.odd-name": '{ "a.b": "x" }',
    "collection.include.list": "db[12][.].*",
    "skipped.operations": "d",
    "snapshot.include.collection.list": "db1[.]docs,db2.*",
    "topic.naming.strategy": "io.debezium.schema.DefaultTopicNamingStrategy",
}
COMPARE = {"any_snapshot_order": True}


def setup(client: Any) -> None:
    client.db1.docs.insert_many([{"_id": number} for number in range(5)])
    client.db1.others.insert_many([{"_id": number} for number in range(2)])
    client.db2["odd-name"].insert_many([{"_id": 1, "a": {"b": "x"}}, {"_id": 2}])
    client.db2["system_like ä"].insert_one({"_id": 1})
    client.db3.docs.insert_one({"_id": 1})
    client.db1.command("create", "a_view", viewOn="docs", pipeline=[])
    client.db1.create_collection("capped", capped=True, size=4096)
    client.db1.capped.insert_one({"_id": 1})


def run(client: Any) -> Iterator[str]:
    client.db1.docs.update_one({"_id": 0}, {"$set": {"x": 1}})
    yield "wait"
    client.db2["odd-name"].delete_one({"_id": 2})
    client.db3.docs.insert_one({"_id": 2})
    client.db1.capped.insert_one({"_id": 2})
    client.db1.docs.drop()
    client.db1.docs.insert_one({"_id": 9})
    client.db1.others.rename("renamed")
    client.db1.renamed.insert_one({"_id": 9})
    client.drop_database("db2")
    client.db2.fresh.insert_one({"_id": 1})
    client.db2.fresh.create_index("x")
