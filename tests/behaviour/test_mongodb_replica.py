"""A replica of MongoDB: updates without documents; collections that are dropped, renamed or replaced; odd keys."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Decimal128, Int64

from tailrace.sinks.replica.target import row_counts
from tests.behaviour.mongodb_replicas import Replica, Shop
from tests.behaviour.mongodb_replicas import replica as replica
from tests.behaviour.mongodb_replicas import shop as shop

LOOKED_UP = {"capture.mode": "change_streams"}
OPLOG = {"capture.mode": "oplog"}
POST_IMAGES = {"capture.mode": "change_streams_update_full", "capture.mode.full.update.type": "post_image"}


@pytest.mark.parametrize(
    "replica",
    [
        LOOKED_UP,
        pytest.param(OPLOG, marks=pytest.mark.long),
        pytest.param(POST_IMAGES, marks=pytest.mark.long),
        pytest.param(
            {**OPLOG, "document.columns": ".*: _id STRING, v BIGINT, a ARRAY<BIGINT>"}, marks=pytest.mark.long
        ),
    ],
    indirect=True,
    ids=["stream", "oplog", "post images", "columns"],
)
def test_updates_without_their_documents_are_followed(replica: Replica) -> None:
    shop = replica.shop
    shop.create_collection("images", changeStreamPreAndPostImages={"enabled": True})
    for name in ("images", "plain", "moved", "replaced", "dropped"):
        shop[name].insert_many([{"_id": f"{key}", "v": 0, "a": [1, 2, 3]} for key in range(200)])
    with replica.running() as run:
        replica.until_same(run)
        for name in ("images", "plain"):
            shop[name].update_many({}, {"$set": {"v": 1}})
            shop[name].update_one({"_id": "1"}, [{"$set": {"a": {"$slice": ["$a", 1]}, "d": {"0": "zero"}}}])
            shop[name].update_one({"_id": "new"}, {"$set": {"v": 5}}, upsert=True)
            shop[name].update_one({"_id": "2"}, {"$set": {"v": 2}})
            shop[name].delete_one({"_id": "2"})
            shop[name].update_one({"_id": "3"}, {"$unset": {"v": 1}})
            shop[name].delete_one({"_id": "3"})
            shop[name].insert_one({"_id": "3", "v": "again"})
        replica.until_same(run)
        shop.command("collMod", "images", changeStreamPreAndPostImages={"enabled": False})
        shop.images.update_one({"_id": "4"}, {"$inc": {"v": 7}})
        shop.late.insert_one({"_id": "1"})
        shop.late.update_one({"_id": "1"}, {"$set": {"v": 1}})
        replica.until_same(run)
    assert replica.marked() == set()
    shop.moved.update_many({"_id": {"$in": ["5", "6"]}}, {"$set": {"v": 5}})
    shop.moved.rename("moved_2")
    shop.moved_2.delete_one({"_id": "6"})
    shop.moved.insert_one({"_id": "5", "v": "of another collection"})
    shop.replaced.update_one({"_id": "7"}, {"$set": {"v": 7}})
    list(shop.plain.aggregate([{"$limit": 3}, {"$out": "replaced"}]))
    shop.dropped.update_one({"_id": "8"}, {"$set": {"v": 8}})
    shop.dropped.drop()
    shop.plain.update_one({"_id": "9"}, {"$set": {"v": 9}})
    with replica.running() as run:
        replica.until_same(run, gone={"dropped"})
    assert replica.marked() == {"replaced"}


LISTED = r"orders|totals|stock|capped|a|b|c|inside|came|viewed"
DEPLOYMENT = {"names": LISTED}
DATABASE = {"names": LISTED, "capture.scope": "database", "capture.target": "SHOP"}


def restructure(shop: Shop) -> None:
    """Drop, rename and replace collections in all ways."""
    list(shop.orders.aggregate([{"$group": {"_id": {"$mod": ["$_id", 2]}, "n": {"$sum": 1}}}, {"$out": "totals"}]))
    shop.stock_new.insert_many([{"_id": 2, "n": 22}, {"_id": 3, "n": 33}])
    shop.stock_new.rename("stock", dropTarget=True)
    shop.stock.insert_one({"_id": 4, "n": 44})
    shop.orders.drop()
    shop.orders.insert_one({"_id": 100, "v": 100})
    list(shop.orders.aggregate([{"$merge": "merged"}]))
    shop.command("convertToCapped", "capped", size=4096)
    shop.capped.insert_one({"_id": 1000})
    shop.a.update_one({"_id": 1}, {"$set": {"v": "a"}})
    shop.a.rename("outside")
    shop.b.update_one({"_id": 1}, {"$set": {"v": "b"}})
    shop.b.rename("c", dropTarget=True)
    shop.b.insert_one({"_id": 1, "v": "new"})
    shop.c.update_one({"_id": 2}, {"$set": {"v": "c"}})
    shop.client.admin.command("renameCollection", f"{shop.name}.inside", to=f"{shop.name}_2.came")
    shop.client.admin.command("renameCollection", f"{shop.name}_2.came", to=f"{shop.name}.came")
    shop.came.insert_one({"_id": "more"})
    shop.viewed.drop()
    shop.command({"create": "viewed", "viewOn": "orders", "pipeline": []})
    shop.viewed.drop()


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
@pytest.mark.parametrize(
    "replica",
    [
        DEPLOYMENT,
        pytest.param(DATABASE, marks=pytest.mark.long),
        pytest.param({**DATABASE, **OPLOG}, marks=pytest.mark.long),
        pytest.param({**DEPLOYMENT, "sink": {"engine": "spark"}}, marks=pytest.mark.long),
    ],
    indirect=True,
    ids=["deployment", "database", "oplog", "spark"],
)
def test_collections_that_are_dropped_renamed_or_replaced_are_followed(replica: Replica, is_stopped: bool) -> None:
    shop = replica.shop
    for name in ("orders", "totals", "stock", "capped", "a", "b", "c", "inside", "viewed"):
        shop[name].insert_many([{"_id": key, "v": key} for key in range(5)])
    with replica.running() as run:
        replica.until_same(run)
        if not is_stopped:
            restructure(shop)
            replica.until_same(run, gone={"a", "inside", "viewed"})
    if is_stopped:
        restructure(shop)
        with replica.running() as run:
            replica.until_same(run, gone={"a", "inside", "viewed"})
    assert replica.marked() == {"totals", "stock", "capped", "came"}
    assert not [name for name in row_counts(str(replica.root), {}) if ".tmp" in name]
    shop.client.drop_database(shop.name)
    shop.orders.insert_one({"_id": "after all"})
    with replica.running() as run:
        replica.until_same(run)
    assert replica.marked() == set()


@pytest.mark.parametrize(
    "replica",
    [
        {"capture.scope": "collection", "capture.target": "SHOP.orders"},
        pytest.param({"capture.scope": "collection", "capture.target": "SHOP.orders", **OPLOG}, marks=pytest.mark.long),
    ],
    indirect=True,
    ids=["stream", "oplog"],
)
def test_a_watched_collection_that_is_dropped_or_renamed_is_followed(replica: Replica) -> None:
    shop, replica.names = replica.shop, "orders"
    shop.orders.insert_many([{"_id": key} for key in range(5)])
    with replica.running() as run:
        replica.until_same(run)
        shop.orders.insert_one({"_id": "before"})
        shop.orders.drop()
        replica.until_same(run, gone={"orders"})
        shop.orders.insert_one({"_id": "after"})
        replica.until_same(run)
        shop.orders.rename("others")
        shop.orders.insert_one({"_id": 1})
        shop.orders.update_one({"_id": 1}, {"$set": {"v": 1}})
        replica.until_same(run)
        assert replica.marked() == set()
        shop.others.rename("orders", dropTarget=True)
        replica.until_same(run)
        assert replica.marked() == {"orders"}
    shop.orders.insert_one({"_id": 2})
    shop.client.drop_database(shop.name)
    shop.orders.insert_one({"_id": "new"})
    with replica.running() as run:
        replica.until_same(run)
    assert replica.marked() == set()


def test_keys_whose_type_changes_are_followed(replica: Replica) -> None:
    shop = replica.shop
    numbers: list[Any] = [1, 2.0, Int64(3), Decimal128("4"), 0, float("nan"), Decimal128("-0"), {"a": 1.0, "b": "x"}]
    others: list[Any] = [1.0, Int64(2), Decimal128("3.0"), 4, -0.0, Decimal128("NaN"), 0.0, {"a": 1, "b": "x"}]
    for name in ("n", "m", "o"):
        shop.create_collection(name)
    for key in numbers:
        if key not in (0, Decimal128("-0")):
            shop.n.insert_one({"_id": key, "v": "old"})
    shop.m.insert_many([{"_id": 0, "v": 0}, {"_id": 10}])
    shop.o.insert_one({"_id": Decimal128("-0")})
    with replica.running() as run:
        replica.until_same(run)
        for key, other in zip(numbers, others, strict=True):
            shop.n.update_one({"_id": key}, {"$set": {"v": "updated"}})
            shop.n.replace_one({"_id": key}, {"_id": other, "v": "new"})
            shop.n.update_one({"_id": key}, {"$set": {"u": 1}})
        shop.m.replace_one({"_id": 0}, {"_id": -0.0, "v": "minus zero"})
        shop.o.replace_one({"_id": 0}, {"_id": 0})
        replica.until_same(run)
        shop.n.delete_many({"v": "new", "_id": {"$ne": 4}})
        shop.m.replace_one({"_id": 0}, {"_id": Decimal128("0E+3"), "v": "zero"})
        shop.m.delete_one({"_id": 10})
        replica.until_same(run)
    shop.n.replace_one({"_id": 4}, {"_id": 4.0})
    shop.n.delete_one({"_id": 4})
    shop.n.insert_one({"_id": Int64(4)})
    shop.m.update_one({"_id": 0}, {"$set": {"v": 1}})
    shop.m.replace_one({"_id": 0}, {"_id": 0, "v": 2})
    with replica.running() as run:
        replica.until_same(run)
    assert replica.marked() == set()
