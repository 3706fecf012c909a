"""A row under a new key, whose large value the log does not repeat, as the source of Spark's MERGE."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tailrace.sinks.replica.fold import COUNT, FROM, KEEP
from tailrace.sinks.replica.spark_sql import keyed_source


def test_a_value_that_the_target_lacks_is_still_missing(spark: SparkSession) -> None:
    """MERGE leaves such a row out then, and its absence makes the table incomplete."""
    target = spark.createDataFrame([(1, "large")], "id int, big string")
    kind = f"id int, big string, {COUNT} bigint, {FROM}id int, {KEEP}big boolean"
    rows = spark.createDataFrame([(10, None, 1, 1, True), (20, None, 1, 2, True)], kind)
    found = keyed_source(rows, target, ["id", "big"], ["id"], ["big"], moves=True).orderBy("id").collect()
    assert [(row.id, row.big, row[f"{KEEP}big"]) for row in found] == [(10, "large", False), (20, None, True)]
