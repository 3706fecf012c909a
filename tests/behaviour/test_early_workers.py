"""Workers that are started while a query is planned are those that its tasks use."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psutil
from pyspark.sql import SparkSession

from tailrace.connectors.postgres.config import resolve
from tailrace.pipeline import early_workers
from tests.conftest import Database


def starters(spark: SparkSession) -> set[int]:
    """The processes that start workers; Spark has one for each environment."""
    jvm: Any = spark.sparkContext._jvm
    java = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    return {each.pid for each in java.children() if _command(each)[-2:] == ["pyspark.daemon", "pyspark.worker"]}


def _command(process: psutil.Process) -> list[str]:
    """Its command, nothing for one that ends."""
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def test_tasks_find_the_workers_that_were_started_early(spark: SparkSession, database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    properties = {**database.properties, "topic.prefix": "t", "slot.name": "never"}
    assert spark.read.format("postgres-cdc").options(**properties).load().count() == 1
    before = starters(spark)
    early_workers.run_tasks(spark.sparkContext, "postgres", resolve(properties), 2)
    assert before
    assert starters(spark) == before
