"""Transactions with metadata: several collections, an abort, filtered collections, a restart."""

from collections.abc import Iterator
from typing import Any

PROPERTIES = {
    "provide.transaction.metadata": "true",
    "collection.exclude.list": "db1.hidden",
    "skipped.operations": "none",
}


def setup(client: Any) -> None:
    for name in ("a", "b", "hidden"):
        client.db1.create_collection(name)
    client.db1.a.insert_one({"_id": 0})


def run(client: Any) -> Iterator[str]:
    db = client.db1
    with client.start_session() as session:
        with session.start_transaction():
            db.a.insert_many([{"_id": number} for number in range(1, 4)], session=session)
            db.b.insert_one({"_id": 1}, session=session)
            db.hidden.insert_one({"_id": 1}, session=session)
            db.a.update_many({}, {"$set": {"x": 1}}, session=session)
            db.a.delete_one({"_id": 2}, session=session)
        session.start_transaction()
        db.a.insert_one({"_id": 50}, session=session)
        session.abort_transaction()
        db.a.insert_one({"_id": 60})
        db.b.insert_one({"_id": 60})
        with session.start_transaction():
            db.hidden.insert_one({"_id": 2}, session=session)
        with session.start_transaction():
            db.b.replace_one({"_id": 1}, {"y": 2}, session=session)
            db.b.find_one_and_delete({"_id": 60}, session=session)
    yield "wait"
    db.a.insert_one({"_id": 65})
    yield "stop"
    with client.start_session() as session, session.start_transaction():
        db.a.insert_one({"_id": 70}, session=session)
        db.b.insert_one({"_id": 70}, session=session)
    yield "start"
    db.a.insert_one({"_id": 80})
    db.other.insert_one({"_id": 80})
