"""Documents as typed columns: rows of the shape `table`, and replicas; what is in no column is JSON in `_rest`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from bson import Decimal128, Int64
from pymongo.database import Database
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tailrace.pipeline.definition import load
from tailrace.pipeline.reconcile import Reconciler
from tailrace.pipeline.runner import Pipeline
from tailrace.sinks.replica.sink import read_table
from tests.behaviour.streams import eventually, started
from tests.servers.mongodb.server import ReplicaSet

UTC = datetime.timezone.utc
NOON = datetime.datetime(2026, 7, 3, 12, 30, tzinfo=UTC)
Shop = Database[dict[str, Any]]


@pytest.fixture
def shop(mongodb: ReplicaSet) -> Iterator[Shop]:
    with mongodb.client() as client:
        database: Shop = client[f"c{uuid4().hex[:8]}"]
        database.orders.insert_many(
            [
                {"_id": 1, "item": "pen", "price": Decimal128("2.50"), "at": NOON, "tags": ["a"]},
                {"_id": 2, "item": "cap", "price": Decimal128("7"), "odd": {"x": Int64(2**40)}},
            ]
        )
        yield database
        client.drop_database(database.name)


def properties(servers: ReplicaSet, shop: Shop, **more: str) -> dict[str, str]:
    return {
        "mongodb.connection.string": servers.url(),
        "capture.scope": "collection",
        "capture.target": f"{shop.name}.orders",
        "topic.prefix": "t",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


@pytest.mark.parametrize("is_declared", [False, True])
def test_rows_of_a_collection_have_columns(
    spark: SparkSession, mongodb: ReplicaSet, shop: Shop, tmp_path: Path, is_declared: bool
) -> None:
    given = properties(mongodb, shop, shape="table", capture__mode="change_streams_update_full")
    if is_declared:
        given["document.columns"] = ".*: _id INT, item STRING, price DECIMAL(10,2), at TIMESTAMP"
    frame = spark.readStream.format("mongodb-cdc").options(**given).load()
    kept: dict[tuple[Any, str], Any] = {}

    def keep(batch: Any, _: int) -> None:
        for row in batch.collect():
            kept[(row["after"] or row["before"])["_key"], row["op"]] = row

    query: StreamingQuery = started(
        frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "state"))
    )
    try:
        eventually(lambda: len(kept) == 2, query)
        shop.orders.insert_one({"_id": "three", "item": 5, "new": True})
        shop.orders.update_one({"_id": 1}, {"$set": {"item": "blue pen"}})
        shop.orders.delete_one({"_id": 2})
        eventually(lambda: len(kept) == 5, query)
    finally:
        query.stop()
    read, new = kept["1", "r"]["after"], kept['"three"', "c"]["after"]
    assert (read["_id"], read["item"], read["at"]) == (1, "pen", NOON.replace(tzinfo=None))
    assert read["price"] == Decimal("2.50")
    assert json.loads(new["_rest"]) == {"item": 5, "new": True}
    assert (new["_id"], new["item"]) == (None, None)
    assert kept["1", "u"]["after"]["item"] == "blue pen"
    assert kept["2", "d"]["after"] is None
    if is_declared:
        assert frame.schema["after"].dataType.fieldNames() == ["_id", "item", "price", "at", "_rest", "_key"]  # type: ignore[attr-defined]
        assert json.loads(read["_rest"]) == {"tags": ["a"]}
        assert json.loads(kept["2", "r"]["after"]["_rest"]) == {"odd": {"x": 2**40}}
    else:
        assert (read["tags"], read["_rest"]) == ('["a"]', None)


def test_an_empty_collection_shows_no_columns(spark: SparkSession, mongodb: ReplicaSet, shop: Shop) -> None:
    shop.orders.delete_many({})
    with pytest.raises(Exception, match=r"declare them in document\.columns"):
        spark.readStream.format("mongodb-cdc").options(**properties(mongodb, shop, shape="table")).load()


def test_records_of_declared_columns_are_refused(spark: SparkSession, mongodb: ReplicaSet, shop: Shop) -> None:
    given = properties(mongodb, shop, document__columns=".*: item STRING")
    with pytest.raises(Exception, match="records have documents as JSON"):
        spark.read.format("mongodb-cdc").options(**given).load().collect()


def test_a_replica_has_the_declared_columns(
    spark: SparkSession, mongodb: ReplicaSet, shop: Shop, tmp_path: Path
) -> None:
    columns = "item STRING, price DECIMAL(10,2), tags ARRAY<STRING>, odd STRUCT<x: BIGINT>"
    config = properties(mongodb, shop, document__columns=rf"{shop.name}\.orders: {columns}")
    content = {
        "name": "columns",
        "source": {"connector": "mongodb", "config": config},
        "sink": {"replica": {"path": "lake"}},
        "checkpoint": "state",
        "trigger": "availableNow",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")

    def once() -> list[dict[str, Any]]:
        run = Pipeline(load(file), spark).start()
        assert run.await_(90)
        run.stop()
        table = TableId(shop.name, "", "orders", DATABASE_TABLE)
        return sorted(read_table(str(tmp_path / "lake"), table).to_pylist(), key=lambda row: row["_key"])

    nothing = dict.fromkeys(("item", "price", "tags", "odd", "_rest"))
    rest = json.dumps({"at": {"$date": "2026-07-03T12:30:00Z"}})
    pen = {**nothing, "_key": "1", "item": "pen", "price": Decimal("2.50"), "tags": ["a"], "_rest": rest}
    cap = {**nothing, "_key": "2", "item": "cap", "price": Decimal("7.00"), "odd": {"x": 2**40}}
    assert once() == [pen, cap]
    shop.orders.update_one({"_id": 2}, {"$set": {"price": "much"}, "$unset": {"odd": 1}})
    shop.orders.delete_one({"_id": 1})
    assert once() == [{**cap, "odd": None, "price": None, "_rest": '{"price": "much"}'}]
    reconciler = Reconciler(load(file), 20)
    (table,) = reconciler.tables([f"{shop.name}.orders"])
    report = reconciler.compare(table).report
    assert report.outcome == "equal"
    assert "the types of numbers" in report.configured["price"]
