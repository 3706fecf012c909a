"""Writes the changes of a PostgreSQL database as files, as a job of spark-submit.

    spark-submit ... changes.py TARGET CHECKPOINT [--once]

TARGET and CHECKPOINT are folders that the driver and all executors reach: shared disks, HDFS or an object store. The
connection comes from the variables DATABASE_HOST, DATABASE_PORT, DATABASE_USER, DATABASE_PASSWORD and DATABASE_NAME of
the driver: an option of spark-submit can be read by all who may list processes.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def main(target: str, checkpoint: str, *options: str) -> None:
    """Read until the job is ended; with --once up to where the log ends now."""
    spark = SparkSession.builder.appName("tailrace-shop").getOrCreate()
    changes = (
        spark.readStream.format("postgres-cdc")
        .option("database.hostname", os.environ["DATABASE_HOST"])
        .option("database.port", os.environ.get("DATABASE_PORT", "5432"))
        .option("database.user", os.environ["DATABASE_USER"])
        .option("database.password", os.environ["DATABASE_PASSWORD"])
        .option("database.dbname", os.environ["DATABASE_NAME"])
        .option("topic.prefix", "shop")
        .option("slot.name", "shop_submitted")
        .option("publication.name", "shop_changes")
        .option("table.include.list", r"public\.orders")
        .option("shape", "event")
        .load()
    )
    writer = changes.writeStream.format("parquet").option("path", target).option("checkpointLocation", checkpoint)
    trigger = {"availableNow": True} if "--once" in options else {"processingTime": "10 seconds"}
    writer.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
