"""A replica's folder that is deleted while its pipeline runs: it is logged, and a snapshot restores the rows."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.pipeline.signaling import send
from tailrace.sinks.replica.target import read_table
from tests.behaviour.streams import eventually, properties
from tests.conftest import Database


def ids(root: Path) -> set[int]:
    is_there = (root / "public.t" / "_delta_log").exists()
    return {row["id"] for row in read_table(str(root), "public.t").to_pylist()} if is_there else set()


def test_a_deleted_replica_is_reported_and_filled_by_a_snapshot(
    spark: SparkSession, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    root = tmp_path / "lake"
    content = {
        "source": {"config": properties(database, signal__poll__interval__ms="100")},
        "sink": {"replica": {"path": str(root)}},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    definition = from_content(content, base=tmp_path, where="test")
    running = Pipeline(definition, session=spark).start()
    try:
        eventually(lambda: ids(root) == {1, 2})
        database.execute("INSERT INTO t VALUES (3)")
        eventually(lambda: ids(root) == {1, 2, 3})
        assert "was deleted" not in caplog.text
        shutil.rmtree(root)
        with caplog.at_level(logging.ERROR):
            database.execute("INSERT INTO t VALUES (4)")
            eventually(lambda: ids(root) == {4})
            eventually(lambda: "the replica of public.t was deleted while the pipeline ran" in caplog.text)
        send(definition, "execute-snapshot", {"data-collections": ["public.t"], "type": "incremental"})
        eventually(lambda: ids(root) == {1, 2, 3, 4})
    finally:
        running.stop()
