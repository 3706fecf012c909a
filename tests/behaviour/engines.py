"""The engine that replica tests run with: `deltalake`, or another one in a process of test_replica_engines.py.

The engines `iceberg` and `postgres` are formats: their tables are in a catalog of SQLite, or on a server of their own.
`spark` merges into Delta tables, `iceberg-spark` into Iceberg's, on a Spark that Iceberg has a runtime for.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyspark
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tailrace.sinks.replica.iceberg.java_properties import driver
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.roots import database_root
from tailrace.sinks.replica.table import Lake, LostRaceError
from tailrace.spark.versions import demand_iceberg
from tailrace.testing.jars import resolve_jars
from tests.servers import target

ENGINE = os.environ.get("TAILRACE_TEST_REPLICA_ENGINE", "deltalake")
BY_SPARK = ENGINE in ("spark", "iceberg-spark")
IS_ICEBERG = ENGINE in ("iceberg", "iceberg-spark")
# Of Delta for Spark; the demo's Kafka comes the same way, so a mirror that has one has the other.
JARS = ("io.delta:delta-spark_4.2_2.13:4.4.0",)
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": 2,
    "spark.master": "local[2]",
    "spark.databricks.delta.snapshotPartitions": 1,
}


def merging() -> dict[str, object]:
    """The settings of a session that merges into the tables."""
    if ENGINE == "spark":
        return {**DELTA, "spark.jars": ",".join(map(str, resolve_jars(JARS)))}
    return {"spark.jars": iceberg_jars(), "spark.sql.shuffle.partitions": 2, "spark.master": "local[2]"}


def iceberg_jars() -> str:
    """The jars with which this Spark merges into Iceberg tables of a catalog of SQLite. Raises TailraceError."""
    packages = (demand_iceberg(pyspark.__version__), driver({"uri": "sqlite:"}))
    return ",".join(str(jar) for each in packages if each for jar in resolve_jars([each], transitive=False))


def place(folder: Path) -> tuple[str, dict[str, str]]:
    """The root of a replica below a folder, with its options."""
    if ENGINE == "postgres":
        return database(folder / "lake")
    if not IS_ICEBERG:
        return str(folder / "lake"), {}
    return "iceberg://lake", catalog(folder / "lake")


def sink(folder: Path) -> dict[str, object]:
    """The settings of a replica in a pipeline file."""
    if ENGINE == "postgres":
        return {**target.settings(folder / "lake")}
    if not IS_ICEBERG:
        return {"path": str(folder / "lake"), "engine": ENGINE}
    engine = {"engine": "spark"} if BY_SPARK else {}
    return {"format": "iceberg", "namespace": "lake", "catalog": catalog(folder / "lake"), **engine}


def catalog(folder: Path) -> dict[str, str]:
    """The properties of an Iceberg catalog in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}


def database(folder: Path) -> tuple[str, dict[str, str]]:
    """The root of a replica in a database of the folder's, with its options."""
    given = target.settings(folder)
    return database_root(given["url"], given["namespace"]), {"url": given["url"]}


def _lake(folder: Path) -> Lake:
    return lake_at(*database(folder))


def stored(root: Path, name: str) -> pa.Table | None:
    """All rows of a replica below the folder `lake`, as another reader has them; None where there is no table."""
    if ENGINE == "postgres":
        found = _lake(root).open(name)
        try:
            return None if found is None else found.scan().read_all()
        except LostRaceError:  # the pipeline has renamed a column meanwhile
            return stored(root, name)
    if not IS_ICEBERG:
        place = str(root / name)
        return DeltaTable(place).to_pyarrow_table() if DeltaTable.is_deltatable(place) else None
    there = load_catalog("tailrace", **catalog(root))
    return there.load_table(("lake", name)).scan().to_arrow() if there.table_exists(("lake", name)) else None


def counted(root: Path) -> dict[str, int]:
    """How many rows each replica below the folder `lake` has, by its name."""
    if ENGINE == "postgres":
        tables = {name: _lake(root).open(name) for name in sorted(_lake(root).names())}
        return {name: table.count() for name, table in tables.items() if table is not None}
    if not IS_ICEBERG:
        return {log.parent.name: int(DeltaTable(log.parent).count()) for log in sorted(root.glob("*/_delta_log"))}
    there = load_catalog("tailrace", **catalog(root))
    names = [name for _, name in there.list_tables("lake")] if there.namespace_exists("lake") else []
    return {name: there.load_table(("lake", name)).scan().count() for name in sorted(names)}
