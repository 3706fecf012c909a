"""A replica of MongoDB: updates without documents; collections that are dropped, renamed or replaced; odd keys."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from bson import Decimal128, Int64, ObjectId, json_util
from pymongo.database import Database
from pyspark.sql import SparkSession

from tailrace.connectors.mongodb.admin import MongoAdmin
from tailrace.connectors.mongodb.config import resolve
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.reconcile import Reconciler
from tailrace.pipeline.replica_states import stored_states
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.states import GONE
from tailrace.sinks.replica.target import read_table, row_counts
from tests.behaviour.streams import eventually
from tests.servers.mongodb.server import ReplicaSet

Documents = Counter[str]
Shop = Database[dict[str, Any]]
LOOKED_UP = {"capture.mode": "change_streams"}
OPLOG = {"capture.mode": "oplog"}
POST_IMAGES = {"capture.mode": "change_streams_update_full", "capture.mode.full.update.type": "post_image"}


@pytest.fixture
def shop(mongodb: ReplicaSet) -> Iterator[Shop]:
    """A database of the test's own."""
    with mongodb.client() as client:
        database: Shop = client[f"r{uuid4().hex[:8]}"]
        yield database
        client.drop_database(database.name)


@dataclass
class Replica:
    """A pipeline that keeps a replica of a database, and what it has to be equal to."""

    spark: SparkSession
    shop: Shop
    definition: Definition
    root: Path
    log: pytest.LogCaptureFixture
    names: str = ".*"

    @contextmanager
    def running(self) -> Iterator[Run]:
        """The pipeline, until the block ends."""
        run = Pipeline(self.definition, session=self.spark).start()
        try:
            yield run
        finally:
            run.stop()

    def source(self) -> dict[str, Documents]:
        """The documents of each captured collection."""
        found = {}
        for name in self.shop.list_collection_names(filter={"type": "collection"}):
            if not name.startswith("system.") and self.is_listed(name):
                found[name] = Counter(map(canonical, self.shop[name].find()))
        return found

    def is_listed(self, name: str) -> bool:
        """Whether the lists have a collection."""
        return re.fullmatch(self.names, name) is not None

    def kept(self) -> dict[str, Documents]:
        """The documents of each of the replica's tables that has some."""
        found = {}
        for name, count in row_counts(self.root).items():
            collection = name.removeprefix(f"{self.shop.name}.")
            if count:
                rows = read_table(str(self.root), TableId(self.shop.name, "", collection, DATABASE_TABLE)).to_pylist()
                found[collection] = Counter(document(row) for row in rows)
        return found

    def is_same(self) -> bool:
        """Whether all documents are there, and no others, and no table is incomplete."""
        wanted = {name: documents for name, documents in self.source().items() if documents}
        return self.kept() == wanted and not self.lacking()

    def lacking(self) -> list[str]:
        """The tables that are not complete, which nobody would know of otherwise."""
        states = stored_states(self.definition.checkpoint)
        return [name for name, state in states.items() if state.is_lacking]

    def gone(self) -> set[str]:
        """The collections that are gone."""
        states = stored_states(self.definition.checkpoint)
        return {name.removeprefix(f"{self.shop.name}.") for name, state in states.items() if state.state == GONE}

    def until_same(self, run: Run, gone: set[str] | None = None) -> None:
        """Wait until all is the same, and so are the collections that are gone."""
        try:
            eventually(lambda: run.await_(0.2) or (self.is_same() and gone in (None, self.gone())))
        except AssertionError as error:
            error.add_note(f"source {self.source()}\nreplica {self.kept()}\nlacking {self.lacking()}")
            raise

    def marked(self) -> set[str]:
        """The collections that were told to be incomplete since the last call."""
        said = [each.getMessage() for each in self.log.records if " is incomplete: " in each.getMessage()]
        self.log.clear()
        return {each.partition(" is incomplete")[0].removeprefix(f"{self.shop.name}.") for each in said}


def canonical(found: dict[str, Any]) -> str:
    return json.dumps(json.loads(json_util.dumps(found, json_options=json_util.RELAXED_JSON_OPTIONS)), sort_keys=True)


def document(row: dict[str, Any]) -> str:
    if "_rest" in row:
        columns = {name: value for name, value in row.items() if name not in ("_rest", "_key") and value is not None}
        return canonical({**columns, **json_util.loads(row["_rest"] or "{}")})
    assert row["document"] is not None, f"a row without its document: {row}"
    return canonical(json_util.loads(row["document"]))


@pytest.fixture
def replica(
    spark: SparkSession,
    mongodb: ReplicaSet,
    shop: Shop,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> Replica:
    """A replica; the parameter has properties of the source, and of the sink beside them."""
    given = dict(getattr(request, "param", {}))
    sink, names = {"read_again": {"at_most_every": "0s"}, **given.pop("sink", {})}, given.pop("names", ".*")
    config = {
        "mongodb.connection.string": mongodb.url(),
        "collection.include.list": rf"{shop.name}\.(?:{names})",
        "topic.prefix": "t",
        "signal.poll.interval.ms": "100",
        "table.watch.interval.ms": "500",
        **{name: value.replace("SHOP", shop.name) for name, value in given.items()},
    }
    content = {
        "source": {"connector": "mongodb", "config": config},
        "sink": {"replica": {"path": "lake", **sink}},
        "checkpoint": "state",
        "trigger": "100ms",
    }
    caplog.set_level(logging.WARNING)
    return Replica(spark, shop, from_content(content, base=tmp_path, where="test"), tmp_path / "lake", caplog, names)


@pytest.mark.parametrize(
    "replica",
    [LOOKED_UP, OPLOG, POST_IMAGES, {**OPLOG, "document.columns": ".*: _id STRING, v BIGINT, a ARRAY<BIGINT>"}],
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


@pytest.mark.parametrize("is_stopped", [False, True], ids=["running", "stopped"])
@pytest.mark.parametrize(
    "replica",
    [
        DEPLOYMENT,
        DATABASE,
        {**DATABASE, **OPLOG},
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
    assert not [name for name in row_counts(replica.root) if ".tmp" in name]
    shop.client.drop_database(shop.name)
    shop.orders.insert_one({"_id": "after all"})
    with replica.running() as run:
        replica.until_same(run)
    assert replica.marked() == set()


@pytest.mark.parametrize(
    "replica",
    [
        {"capture.scope": "collection", "capture.target": "SHOP.orders"},
        {"capture.scope": "collection", "capture.target": "SHOP.orders", **OPLOG},
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


@pytest.mark.parametrize("kind", ["capped", "clustered", "plain"])
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
