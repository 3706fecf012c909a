"""Delta replicas whose tables appear by name in a catalogue, here a Hive metastore as PySpark has it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable
from hive_metastore.ttypes import PrimaryKeysRequest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.catalogs.entry import TableDescription, entry
from tailrace.sinks.replica.catalogs.hive import Hive
from tailrace.testing.jars import resolve_jars
from tests.behaviour.engines import JARS
from tests.behaviour.streams import properties
from tests.conftest import Database
from tests.servers.hive.server import HiveServer

PATIENCE = 150.0


@pytest.fixture(scope="module")
def hive() -> Iterator[HiveServer]:
    with HiveServer() as server:
        yield server


@pytest.fixture
def shop(hive: HiveServer, database: Database, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(hive, database, tmp_path)
    yield shop
    with shop.hive._asking() as client:
        for name in client.get_all_tables("default"):
            client.drop_table("default", name, False)


class Shop:
    """A pipeline into a replica with a catalogue."""

    def __init__(self, server: HiveServer, database: Database, folder: Path) -> None:
        self.hive, self.database, self.folder = Hive(server.uri, "default", None), database, folder
        self.file, self.replica = folder / "pipeline.yaml", folder / "replica"
        self.catalog = {"type": "hive", "uri": server.uri}

    def start(self, spark: SparkSession, trigger: str = "availableNow", **settings: Any) -> Run:
        given = {"topic.prefix": "t", "slot.name": f"slot_{self.database.name}", "table.watch.interval.ms": "500"}
        sink = {"path": "replica", "names": "catalog", "catalog": self.catalog, "namespace": "default", **settings}
        content = {
            "source": {"config": {**properties(self.database), **given}},
            "sink": {"replica": sink},
            "checkpoint": "state",
            "trigger": trigger,
        }
        self.file.write_text(yaml.safe_dump(content))
        return Pipeline(load(self.file), session=spark).start()

    def run(self, spark: SparkSession, **settings: Any) -> None:
        running = self.start(spark, **settings)
        assert running.await_(200)

    def names(self) -> list[str]:
        with self.hive._asking() as client:
            return sorted(client.get_all_tables("default"))

    def table(self, name: str) -> Any:
        with self.hive._asking() as client:
            return client.get_table("default", name)

    def columns(self, name: str) -> dict[str, tuple[str, str | None]]:
        return {each.name: (each.type, each.comment) for each in self.table(name).sd.cols}

    def key(self, name: str) -> list[str]:
        with self.hive._asking() as client:
            found = client.get_primary_keys(PrimaryKeysRequest("default", name)).primaryKeys
        return [each.column_name for each in sorted(found, key=lambda each: each.key_seq)]

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(CliRunner().invoke(app, ["status", str(self.file), "--json"]).stdout)
        return found


def eventually(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.2)
    return is_so()


def table_of_somebody(shop: Shop) -> Any:
    """A table that the pipeline has not registered, in another place."""
    schema = pa.schema([("id", pa.int64())])
    made = entry("public_taken", "x", f"file://{shop.folder}/elsewhere", schema, TableDescription())
    table = shop.hive._made(made, {})
    table.parameters = {"EXTERNAL": "TRUE"}
    return table


def test_tables_appear_with_comments_and_keys_and_follow_their_source(shop: Shop, spark: SparkSession) -> None:
    shop.database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, unit_price numeric(9,2), at timestamp)",
        "COMMENT ON TABLE orders IS 'what was ordered'",
        "COMMENT ON COLUMN orders.unit_price IS 'in euros, ''net'''",
        "CREATE TABLE taken (id int PRIMARY KEY)",
        "INSERT INTO orders VALUES (1, 9.50, now())",
        "INSERT INTO taken VALUES (1)",
    )
    with shop.hive._asking() as client:
        client.create_table(table_of_somebody(shop))
    shop.run(spark)
    assert shop.columns("public_orders") == {
        "id": ("bigint", None),
        "unit_price": ("decimal(9,2)", "in euros, 'net'"),
        "at": ("timestamp", None),
    }
    found = shop.table("public_orders")
    assert found.parameters["comment"] == "what was ordered"
    assert found.parameters["spark.sql.sources.provider"] == "delta"
    assert found.sd.location == f"file:{shop.replica}/public_orders"
    assert shop.key("public_orders") == ["id"]
    # Somebody else's table stays, and that is told; rows have arrived all the same.
    assert shop.table("public_taken").sd.location == f"file:{shop.folder}/elsewhere"
    assert DeltaTable(shop.replica / "public_taken").count() == 1
    (problem,) = [each for each in shop.status()["problems"] if each["name"] == "catalog"]
    assert "public_taken is not in the catalog: the catalog has another table of the name" in problem["what"]
    assert problem["remedy"].startswith("drop or rename that one in the catalog")

    with shop.hive._asking() as client:
        client.drop_table("default", "public_taken", False)
    shop.database.execute(
        "ALTER TABLE orders ALTER COLUMN id TYPE numeric(20), ADD COLUMN note text, DROP COLUMN at",
        "COMMENT ON COLUMN orders.note IS 'by hand'",
        "INSERT INTO orders VALUES (2, 1, 'new')",
    )
    shop.run(spark)
    assert shop.columns("public_orders")["note"] == ("string", "by hand")
    assert shop.columns("public_orders")["id"] == ("decimal(20,0)", None)
    assert shop.key("public_orders") == ["id"]
    assert shop.names() == ["public_orders", "public_taken"]
    assert [each for each in shop.status()["problems"] if each["name"] == "catalog"] == []


@pytest.mark.long
def test_spark_reads_the_tables_by_name(shop: Shop, spark: SparkSession) -> None:
    shop.database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, tags text[], doc jsonb)",
        "INSERT INTO orders VALUES (1, '{a,b}', '{}'), (2, NULL, NULL)",
    )
    shop.run(spark)
    jars = ",".join(map(str, resolve_jars(JARS)))
    program = f"""
from pyspark.sql import SparkSession
session = (SparkSession.builder.master("local[1]").enableHiveSupport()
    .config("spark.jars", {jars!r}).config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.hadoop.hive.metastore.uris", {shop.catalog["uri"]!r}).getOrCreate())
print("TABLES", [row.tableName for row in session.sql("SHOW TABLES IN default").collect()])
print("ROWS", [tuple(row) for row in session.sql("SELECT id, tags FROM default.public_orders ORDER BY id").collect()])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=shop.folder, timeout=240
    )
    assert "TABLES ['public_orders']" in ran.stdout, ran.stderr[-3000:]
    assert "ROWS [(1, ['a', 'b']), (2, None)]" in ran.stdout, ran.stderr[-3000:]


@pytest.mark.long
def test_a_catalog_that_is_away_keeps_no_row_back_and_gets_what_it_missed(
    shop: Shop, spark: SparkSession, hive: HiveServer
) -> None:
    shop.database.execute("CREATE TABLE orders (id bigint PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    hive.kill()
    running = shop.start(spark, "200ms")
    try:
        rows = shop.replica / "public_orders"
        assert eventually(lambda: DeltaTable.is_deltatable(str(rows)) and DeltaTable(rows).count() == 1)
        assert eventually(lambda: any("does not answer" in each for each in running.progress().catalog))
        assert "replication goes on" in running.progress().catalog[0]
        assert any(each["name"] == "catalog" for each in shop.status()["problems"])
        checked = CliRunner().invoke(app, ["check", str(shop.file)])
        assert checked.exit_code == 1
        assert "does not answer" in checked.stdout
        shop.database.execute("INSERT INTO orders VALUES (2)")
        assert eventually(lambda: DeltaTable(rows).count() == 2)
        hive.start()
        assert eventually(lambda: shop.names() == ["public_orders"])
        assert eventually(lambda: running.progress().catalog == ())
    finally:
        running.stop()
        if not hive.running:
            hive.start()


@pytest.mark.long
def test_a_renamed_table_moves_and_a_dropped_one_leaves(shop: Shop, spark: SparkSession) -> None:
    shop.database.execute(
        "CREATE TABLE first (id bigint PRIMARY KEY)",
        "CREATE TABLE second (id bigint PRIMARY KEY)",
        "INSERT INTO first VALUES (1)",
        "INSERT INTO second VALUES (1)",
    )
    running = shop.start(spark, "200ms")
    try:
        assert eventually(lambda: shop.names() == ["public_first", "public_second"])
        shop.database.execute("ALTER TABLE first RENAME TO third", "DROP TABLE second")
        shop.database.execute("INSERT INTO third VALUES (2)")
        assert eventually(lambda: "public_third" in shop.names())
        assert eventually(lambda: shop.names() == ["public_third"]), shop.names()
    finally:
        running.stop()
