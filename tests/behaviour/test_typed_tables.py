"""Typed DataFrames of many tables from one slot, and VARIANT: the examples of the page on row shapes."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tailrace.errors import ConfigError
from tailrace.spark.changes import Tables
from tests.behaviour.streams import Stream, properties, started
from tests.behaviour.test_readme import shown
from tests.conftest import Database


@pytest.fixture
def shop(database: Database) -> Database:
    """Two tables, one with a large value that stays out of line."""
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(9,2), day date, memo text)",
        "ALTER TABLE orders ALTER memo SET STORAGE EXTERNAL",
        'CREATE TABLE "Log" (what text)',
        "INSERT INTO orders VALUES (1, 4.06, '2024-02-29', repeat('m', 9000)), (2, -0.05, NULL, NULL)",
    )
    return database


def written(folder: Path, spark: SparkSession) -> list[dict[str, Any]]:
    return [row.asDict() for row in spark.read.parquet(str(folder)).drop("batch").orderBy("ts", "id").collect()]


@pytest.mark.long
def test_the_example(spark: SparkSession, shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = shown("tables").replace('"lake', f'"{tmp_path}/lake').replace('f"lake', f'f"{tmp_path}/lake')
    script = script.replace(".start()", ".trigger(availableNow=True).start()")

    def run() -> None:
        names: dict[str, Any] = {"spark": spark, "config": properties(shop)}
        exec(compile(script, "docs/row-shapes.md", "exec"), names)
        assert names["query"].awaitTermination(120)

    run()
    shop.execute(
        "UPDATE orders SET amount = 5 WHERE id = 1",
        "UPDATE orders SET amount = 6.50 WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
    )
    run()
    first, second, *later = written(tmp_path / "lake" / "public.orders", spark)
    assert (first["op"], first["amount"], str(first["day"]), len(first["memo"])) == (
        "r",
        Decimal("4.06"),
        "2024-02-29",
        9000,
    )
    assert (second["id"], second["amount"], second["memo"]) == (2, Decimal("-0.05"), None)
    assert [(row["op"], row["id"], row["amount"]) for row in later] == [("u", 1, Decimal("6.50")), ("d", 2, None)]


def test_each_layout_unchanged_values_and_positions(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    found: list[tuple[str, tuple[str, ...], list[str], list[dict[str, Any]]]] = []

    def keep(frame: DataFrame, _: int) -> None:
        for table, key, rows in tailrace.tables(frame):
            images = rows.schema["after"].dataType.fieldNames()  # type: ignore[attr-defined]
            found.append((str(table), key, images, [row.asDict(recursive=True) for row in rows.collect()]))
        assert not frame.is_cached

    def run() -> None:
        frame = Stream(spark, properties(shop, shape="arrow"), tmp_path).frame()
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert started(writer.trigger(availableNow=True)).awaitTermination(250)

    run()
    assert [(table, key, len(rows)) for table, key, _, rows in found] == [("public.orders", ("id",), 2)]
    assert {row["commit"] for row in found[0][3]} == {None}
    found.clear()
    shop.execute(
        "UPDATE orders SET amount = 5 WHERE id = 1",
        """INSERT INTO "Log" VALUES ('a')""",
        "ALTER TABLE orders ADD note text",
        "UPDATE orders SET note = 'n' WHERE id = 1",
        "TRUNCATE orders",
    )
    run()
    described = re.findall(r"^ +\| ((?:`\w+`(?:, )?)+) \|", Tables.__doc__ or "", re.MULTILINE)
    assert [name.strip("`") for row in described for name in row.split(", ")] == [*found[0][3][0]], "help() lists them"
    log, before, after = found
    assert (log[0], log[1], log[3][0]["after"]) == ("public.Log", (), {"what": "a"})
    assert (before[2], after[2]) == (["id", "amount", "day", "memo"], ["id", "amount", "day", "memo", "note"])
    (old,), (new,) = before[3], after[3]
    assert (old["op"], old["unchanged"], old["after"]["memo"]) == ("u", ["memo"], None)
    assert (new["after"]["note"], new["unchanged"]) == ("n", ["memo"])
    assert old["commit"] < log[3][0]["commit"] < new["commit"]
    assert old["order"] < new["order"]
    assert old["source"]["lsn"] < new["source"]["lsn"]


def test_variants_are_exact(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "config": {**properties(shop), "snapshot.mode": "initial"}}
    script = shown("variants").replace("readStream", "read")
    exec(compile(script, "docs/row-shapes.md", "exec"), names)
    assert {row["amount"] for row in names["typed"].collect()} == {Decimal("4.06"), Decimal("-0.05")}
    variants = tailrace.variants(names["changes"])
    assert [variants.schema[name].dataType.simpleString() for name in ("key", "after")] == ["variant", "variant"]


def test_a_wrong_configuration_is_refused_before_anything_is_read(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r"database\.hostname: A value is required"):
        tailrace.read(spark, {"topic.prefix": "shop"})


def test_another_shape_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="shape=arrow"):
        next(tailrace.tables(spark.range(1)))
