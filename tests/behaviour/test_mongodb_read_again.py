"""Collections of MongoDB that a replica keeps or reads again, and what is said of them in advance and afterwards."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from bson import ObjectId

from tailrace.connectors.mongodb.admin import MongoAdmin
from tailrace.connectors.mongodb.config import resolve
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tailrace.pipeline.reconcile import Reconciler
from tailrace.sinks.replica.target import read_table
from tests.behaviour.mongodb_replicas import Replica, Shop
from tests.behaviour.mongodb_replicas import replica as replica
from tests.behaviour.mongodb_replicas import shop as shop
from tests.behaviour.streams import eventually
from tests.servers.mongodb.server import ReplicaSet


@pytest.mark.parametrize("replica", [{"sink": {"on_drop": "keep"}}], indirect=True)
def test_dropped_collections_are_kept_if_asked_for_and_reconcile_lists_them(replica: Replica) -> None:
    shop = replica.shop
    for name in ("a", "b", "c"):
        shop[name].insert_many([{"_id": key} for key in range(3)])
    with replica.running() as run:
        replica.until_same(run)
        shop.a.update_one({"_id": 1}, {"$set": {"v": 1}})
        shop.a.drop()
        shop.b.rename("c", dropTarget=True)
        shop.c.insert_one({"_id": "more"})
        eventually(lambda: run.await_(0.2) or replica.gone() == {"a", "b"})
        eventually(lambda: run.await_(0.2) or replica.kept()["c"] == replica.source()["c"])
    assert sorted(replica.kept()) == ["a", "c"]
    assert replica.marked() == set()
    reconciler = Reconciler(replica.definition, 5)
    reports = {str(table): reconciler.compare(table).report for table in reconciler.tables([])}
    kept, emptied = reports[f"{shop.name}.a"], reports[f"{shop.name}.b"]
    assert (kept.outcome, kept.target_rows) == ("not compared", 3)
    assert "its rows are kept (on_drop: keep)" in str(kept.reason)
    assert (emptied.outcome, emptied.target_rows) == ("equal", 0)
    assert "the source has no such table any more" in str(emptied.reason)
    assert [str(each) for each in reconciler.tables([f"{shop.name}.a"])] == [f"{shop.name}.a"]


SLOW = {"sink": {"read_again": {"at_most_every": "0s", "rows_per_second": 40}}, "incremental.snapshot.chunk.size": "20"}


@pytest.mark.long
@pytest.mark.parametrize("replica", [SLOW], indirect=True)
def test_collections_that_are_read_again_may_be_dropped_and_renamed_meanwhile(replica: Replica) -> None:
    shop, names = replica.shop, ("dropped", "again", "moved", "target", "other")
    for name in names:
        shop[name].insert_many([{"_id": key} for key in range(100)])
    with replica.running() as run:
        replica.until_same(run)
        for name in ("dropped", "again", "moved", "target"):
            list(shop.other.aggregate([{"$addFields": {"from": name}}, {"$out": name}]))
        eventually(lambda: run.await_(0.2) or (replica.root / "_reading").exists())
        shop.dropped.drop()
        shop.again.drop()
        shop.again.insert_many([{"_id": key, "v": "again"} for key in range(10)])
        shop.moved.rename("moved_2")
        shop.other.rename("target", dropTarget=True)
        replica.until_same(run, gone={"dropped", "moved", "other"})
    assert replica.marked() >= {"dropped", "again", "moved", "target", "moved_2"}
    assert not any((replica.root / "_reading").iterdir())


def test_a_change_of_how_documents_become_rows_is_told(replica: Replica) -> None:
    shop = replica.shop
    shop.a.insert_many([{"_id": key, "v": key, "w": 1} for key in range(3)])
    shop.b.insert_many([{"_id": key} for key in range(3)])
    with replica.running() as run:
        replica.until_same(run)
        shop.a.insert_one({"_id": 5})
        replica.until_same(run)
    config = replica.definition.source.config
    assert isinstance(config, dict)
    config["document.columns"] = rf"{shop.name}\.a: v BIGINT"
    with replica.running() as run:
        eventually(lambda: run.await_(0.2) or replica.marked() == {"a"})
        replica.until_same(run)
    rows = read_table(str(replica.root), TableId(shop.name, "", "a", DATABASE_TABLE)).to_pylist()
    assert {row["v"] for row in rows} == {0, 1, 2, None}


@pytest.mark.parametrize(
    "kind", [*(pytest.param(kind, marks=pytest.mark.long) for kind in ("capped", "clustered")), "plain"]
)
def test_a_collection_is_read_again_with_nothing_configured(replica: Replica, kind: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "capped": {"capped": True, "size": 1 << 20},
        "clustered": {"clusteredIndex": {"key": {"_id": 1}, "unique": True}},
        "plain": {},
    }
    shop = replica.shop
    shop.create_collection("a", **options[kind])
    shop.a.insert_many([{"_id": key, "v": key} for key in [*range(50), "text", ObjectId(), None, {"a": 1}]])
    with replica.running() as run:
        replica.until_same(run)
        shutil.rmtree(replica.root)
        shop.a.insert_one({"_id": "more"})
        eventually(lambda: run.await_(0.2) or replica.marked() == {"a"})
        replica.until_same(run)


def test_what_will_make_a_replica_incomplete_is_named_in_advance(mongodb: ReplicaSet, shop: Shop) -> None:
    shop.create_collection("kept", changeStreamPreAndPostImages={"enabled": True})
    shop.create_collection("plain")

    def said(**given: str) -> dict[str, tuple[bool | None, str]]:
        config = {
            "mongodb.connection.string": mongodb.url(),
            "topic.prefix": "t",
            "collection.include.list": rf"{shop.name}\..*",
            "capture.for.replica": "true",
            **{name.replace("__", "."): value for name, value in given.items()},
        }
        return {each.name: (each.ok, f"{each.what} {each.remedy}") for each in MongoAdmin(resolve(config)).checks()}

    assert {name for name, (ok, _) in said().items() if not ok} == set()
    ok, what = said(capture__mode="oplog")["updates"]
    assert ok
    assert "each one is looked up" in what
    ok, what = said(capture__mode__full__update__type="post_image")["post-images"]
    assert ok is None
    assert f"{shop.name}.plain" in what
    assert f"{shop.name}.kept" not in what
    assert 'collMod: "plain"' in what
    assert said(cursor__pipeline="[]")["cursor.pipeline"][0] is None
    skipping = {"cursor__oversize__handling__mode": "skip", "cursor__oversize__skip__threshold": "1000"}
    ok, what = said(**skipping)["cursor.oversize.handling.mode"]
    assert ok is None
    assert "more than 1,000 bytes" in what
