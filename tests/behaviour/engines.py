"""The engine that replica tests run with: `deltalake`, or `spark` in a process of test_replica_spark.py."""

from __future__ import annotations

import os

ENGINE = os.environ.get("TAILRACE_TEST_REPLICA_ENGINE", "deltalake")
DELTA = {
    "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": 2,
    "spark.master": "local[2]",
    "spark.databricks.delta.snapshotPartitions": 1,
}
