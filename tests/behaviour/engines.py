"""The engine that replica tests run with: `deltalake`, or `spark` in a process of test_replica_spark.py."""

from __future__ import annotations

import os

ENGINE = os.environ.get("TAILRACE_TEST_REPLICA_ENGINE", "deltalake")
# Of Delta for Spark; the demo's Kafka comes the same way, so a mirror that has one has the other.
JARS = ("io.delta:delta-spark_4.2_2.13:4.4.0",)
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": 2,
    "spark.master": "local[2]",
    "spark.databricks.delta.snapshotPartitions": 1,
}
