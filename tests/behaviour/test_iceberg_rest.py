"""A pipeline into Iceberg tables of a REST catalog: it is stopped, the catalog dies, and others read its tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.form import FormatVersion
from tests.behaviour.streams import properties
from tests.behaviour.test_iceberg_spark import RELEASE, by_spark
from tests.behaviour.test_spark_versions import has_spark
from tests.conftest import Database
from tests.servers.iceberg_java import JavaReader, java_reader
from tests.servers.iceberg_java import why_not_here as no_reader
from tests.servers.iceberg_rest import RestCatalog, why_not_here
from tests.unit.sinks.iceberg.lake import by_duckdb

SOON = 8


def until(run: Run, is_so: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        assert not run.await_(0.2)


@pytest.fixture(scope="module")
def reader() -> Iterator[JavaReader]:
    """Iceberg's own reader in Java."""
    if reason := no_reader():
        pytest.skip(reason)
    with java_reader() as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_a_pipeline_goes_on_through_a_rest_catalog(
    database: Database, spark: SparkSession, tmp_path: Path, reader: JavaReader, version: FormatVersion
) -> None:
    if reason := why_not_here():
        pytest.skip(reason)
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT n, 'a' FROM generate_series(1, 100) n"
    )
    with RestCatalog() as catalog:
        sink = {"format": "iceberg", "namespace": "shop", "catalog": catalog.options, "format_version": version}
        content = {"source": {"config": properties(database)}, "sink": {"replica": sink}, "checkpoint": "state"}
        definition = from_content({**content, "trigger": "100ms"}, base=tmp_path, where="test")

        def rows() -> list[dict[str, Any]]:
            return by_duckdb(catalog.catalog().load_table(("shop", "public.t")))

        def has(value: str) -> bool:
            found = catalog.catalog().table_exists(("shop", "public.t")) and rows()
            return bool(found) and found[0]["v"] == value  # type: ignore[index]

        run = Pipeline(definition, session=spark).start()
        until(run, lambda: has("a"))
        database.execute("UPDATE t SET v = 'b' WHERE id < 10", "DELETE FROM t WHERE id = 50")
        until(run, lambda: has("b"))
        run.stop()
        database.execute("UPDATE t SET v = 'c' WHERE id < 5", "INSERT INTO t VALUES (101)")
        run = Pipeline(definition, session=spark).start()
        try:
            until(run, lambda: has("c"))
            catalog.kill()
            database.execute("UPDATE t SET v = 'd' WHERE id = 1")
            until(run, lambda: run.progress().sink_problem is not None, SOON)
            catalog.start()
            until(run, lambda: rows()[0]["v"] == "d")
            until(run, lambda: run.progress().sink_problem is None, SOON)
        finally:
            run.stop()
        with database.connect() as connection:
            wanted = connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()
        assert [tuple(row.values()) for row in rows()] == wanted
        table = catalog.catalog().load_table(("shop", "public.t"))
        assert table.format_version == version
        found = {"java": reader.rows(table.metadata_location)}
        if has_spark(RELEASE):  # `make spark-versions` brings it
            found["spark"], _ = by_spark(table.metadata_location)
        assert {name: sorted((row["id"], row["v"]) for row in each) for name, each in found.items()} == dict.fromkeys(
            found, wanted
        )
