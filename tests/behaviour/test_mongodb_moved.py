"""Collections of MongoDB that get another name while they are read: by a snapshot, by a chunk, by a lookup."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from bson import Binary, encode
from pymongo import MongoClient

from tailrace.capture.capture import Capture
from tailrace.config import Config
from tailrace.connectors.mongodb.catalog import Collections, table_id
from tailrace.connectors.mongodb.client import Client
from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.connector import MongoConnector
from tailrace.connectors.mongodb.log.changes import pieces
from tailrace.connectors.mongodb.log.events import ChangeEvents
from tailrace.connectors.mongodb.log.lookup import DocumentLookup
from tailrace.connectors.mongodb.snapshot.rows import read
from tailrace.connectors.mongodb.types.layout import Buffer, Values
from tailrace.connectors.snapshots import SnapshotGone, Unread
from tailrace.errors import SourceError
from tailrace.snapshot.splits import planned
from tests.behaviour.mongodb_replicas import Shop
from tests.behaviour.mongodb_replicas import shop as shop
from tests.conformance.mongodb import PASSWORD
from tests.servers.mongodb.server import ReplicaSet


@pytest.fixture
def config(mongodb: ReplicaSet, shop: Shop) -> Config:
    """A replica of the database."""
    scope = {"capture.scope": "database", "capture.target": shop.name, "capture.for.replica": "true"}
    return resolve({"mongodb.connection.string": mongodb.url(), "topic.prefix": "t", **scope})


@pytest.fixture
def connector(config: Config) -> Iterator[MongoConnector]:
    with closing(MongoConnector(config)) as connector:
        yield connector


def rows(config: Config, splits: list[Any]) -> list[tuple[str, str]]:
    """Collection and key of the rows of splits."""
    batches = [batch for split in splits for chunk in read(config, split) for batch in chunk.batches]
    return sorted(
        (batch.table.id.table, key) for batch in batches for key in batch.rows.column("after").field("id").to_pylist()
    )


def test_a_snapshot_does_not_read_another_collection_of_a_name(
    config: Config, connector: MongoConnector, shop: Shop
) -> None:
    for name in ("renamed", "dropped", "replaced", "same"):
        shop[name].insert_one({"_id": name})
    splits = planned(connector.snapshots, config, connector.snapshots.open_now(config))
    of = {split.table.table: split for split in splits}
    shop.renamed.rename("other")
    shop.dropped.drop()
    shop.replaced.drop()
    shop.replaced.insert_one({"_id": "another one"})
    assert rows(config, [of["dropped"], of["same"]]) == [("same", '"same"')]
    with pytest.raises(SnapshotGone, match="renamed to other"):
        rows(config, [of["renamed"]])
    with pytest.raises(SourceError) as caught:
        rows(config, [of["replaced"]])
    assert connector.snapshots.failures.is_transient(caught.value)


def test_a_first_snapshot_has_what_was_renamed_before_it_is_read(
    config: Config, connector: MongoConnector, shop: Shop
) -> None:
    shop.a.insert_one({"_id": "a"})
    shop.b.insert_one({"_id": "b"})
    with closing(Capture(connector)) as capture:
        begin = capture.begin()
        first = capture.head(begin, None)
        shop.a.rename("c")
        shop.new.insert_one({"_id": "new"})
        assert rows(config, list(capture.plan(begin, first))) == [("b", '"b"'), ("c", '"a"'), ("new", '"new"')]


def test_a_chunk_does_not_read_another_collection_of_a_name(
    config: Config, connector: MongoConnector, shop: Shop
) -> None:
    shop.a.insert_many([{"_id": key} for key in range(10)])
    table = table_id(shop.name, "a")

    def chunks() -> None:
        with connector.snapshots.chunks(config) as session, session.table(table, "a", None) as chunk:
            page = chunk.page(None, None)
            maximum = page.maximum()
            assert maximum is not None
            assert page.after(None, maximum, 5)[2] == 5
            shop.a.rename("b")
            page.after(None, maximum, 5)

    with pytest.raises(Unread, match="no such collection"):
        chunks()
    with pytest.raises(Unread, match="no such collection"):
        chunks()


def event(shop: Shop, uuid: bytes, key: Any) -> dict[str, Any]:
    """An update of a document without the document."""
    return {
        "_id": {"_data": "82"},
        "operationType": "update",
        "ns": {"db": shop.name, "coll": "a"},
        "collectionUUID": Binary(uuid, 4),
        "documentKey": {"_id": key},
        "updateDescription": {"updatedFields": {}, "removedFields": [], "truncatedArrays": []},
    }


def events(*found: dict[str, Any]) -> ChangeEvents:
    raw = [encode(each) for each in found]
    starts = [sum(map(len, raw[:place])) for place in range(len(raw))]
    return ChangeEvents(Values.documents(Buffer(raw), np.array(starts)))


def uuid_of(client: Client, config: Config, table: Any) -> bytes:
    return Collections(client, config).identities()[table]


def test_large_documents_are_looked_up_a_few_at_a_time(config: Config, shop: Shop) -> None:
    shop.a.insert_many([{"_id": key, "text": "x" * (1 << 20)} for key in range(40)])
    table = table_id(shop.name, "a")
    uuid = uuid_of(shop.client, config, table)
    lookup = DocumentLookup(config, lambda: shop.client)
    counts: list[Any] = []
    for piece in pieces(events(*(event(shop, uuid, key) for key in range(40)), event(shop, uuid, "gone")), lookup):
        lookup.size = 8 if not counts else lookup.size
        whole = lookup.completed(table, piece)
        counts.append(len(piece))
        assert not whole.kept.any()
        assert whole.after.present.sum() + whole.gone.sum() == len(piece)
    assert counts == [41]
    assert lookup.size < 8


def test_a_collection_that_may_not_be_read_under_its_new_name_lacks_documents(
    mongodb: ReplicaSet, config: Config, shop: Shop
) -> None:
    shop.a.insert_one({"_id": 1})
    table = table_id(shop.name, "a")
    uuid = uuid_of(shop.client, config, table)
    user = f"reader{uuid4().hex[:8]}"
    privileges = [{"resource": {"db": shop.name, "collection": "a"}, "actions": ["find"]}]
    shop.command("createRole", user, privileges=privileges, roles=[])
    mongodb.create_user(user, PASSWORD, [{"role": user, "db": shop.name}])
    with MongoClient[dict[str, Any]](mongodb.url(user, PASSWORD)) as client:
        lookup = DocumentLookup(config, lambda: client)
        assert lookup.completed(table, events(event(shop, uuid, 1))).after.present.all()
        shop.a.rename("b")
        whole = lookup.completed(table, events(event(shop, uuid, 1)))
        assert whole.kept.all()
        assert f"the user may not read {shop.name}.b" in str(whole.lacking)
        shop.b.drop()
        whole = lookup.completed(table, events(event(shop, uuid, 1)))
        assert (bool(whole.kept.all()), whole.lacking) == (True, None)
    shop.command("dropRole", user)
