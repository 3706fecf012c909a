"""Lists by expressions, names of other characters, pre-images, ids of every type, a part of the snapshot."""

from collections.abc import Iterator
from typing import Any

from bson import Int64, ObjectId, Regex, Timestamp

PROPERTIES = {
    "database.include.list": "dbit,inc.*",
    "collection.exclude.list": "dbit.exc.*, inc1.c2",
    "skipped.operations": "none",
    "capture.mode": "change_streams_update_full_with_pre_image",
    "capture.mode.full.update.type": "post_image",
    "snapshot.include.collection.list": "dbit.dbz865_my@coll, inc1.c1",
    "snapshot.collection.filter.overrides": "dbit.dbz865_my@coll",
    "snapshot.collection.filter.overrides.dbit.dbz865_my@coll": '{ "_id": { "$gt": 1 } }',
    "provide.transaction.metadata": "true",
}
COMPARE = {"any_snapshot_order": True}
PLACES = (("dbit", "dbz865_my@coll"), ("dbit", "exc1"), ("dbit", "c"), ("inc1", "c1"), ("inc1", "c2"), ("other", "c"))


def setup(client: Any) -> None:
    for database, name in PLACES:
        client[database].create_collection(name, changeStreamPreAndPostImages={"enabled": True})
        client[database][name].insert_many([{"_id": 1, "op": "x"}, {"_id": 2, "op": {"op": 1}}])


def run(client: Any) -> Iterator[str]:
    for database, name in PLACES:
        collection = client[database][name]
        collection.insert_one({"_id": {"a": 1, "b": [1, {"c": None}]}, "v": 1})
        collection.update_one({"_id": 1}, {"$set": {"v": 1}})
        collection.update_one({"_id": 1}, {"$set": {"v": 2}})
        collection.delete_one({"_id": 1})
        yield "wait"
    oid = ObjectId("5f1a2b3c4d5e6f7a8b9c0d00")
    for id_ in (Int64(5), 5.5, "5", oid, True, None, Timestamp(1, 2), b"\1\2", Int64(2**60)):
        client.dbit.c.insert_one({"_id": id_, "r": Regex("^a", "i")})
    client.inc1.c1.drop()
    client.incX.later.insert_one({"_id": 1})
    yield "wait"
    client.dbit.c.rename("renamed")
    client.dbit.renamed.insert_one({"_id": "after"})
