"""Writes the changes of a PostgreSQL database to a volume, as a task of a Databricks job (see databricks.yml)."""

from __future__ import annotations

import argparse
import os

from pyspark.sql import SparkSession

from pyspark_tailrace_postgres import DefaultSource


def main() -> None:
    """Read until the task is ended."""
    parser = argparse.ArgumentParser()
    for name in ("host", "user", "database", "volume"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    # Whether the runtime finds the format by itself is not known.
    spark.dataSource.register(DefaultSource)
    changes = (
        spark.readStream.format("postgres-cdc")
        .option("database.hostname", given.host)
        .option("database.user", given.user)
        .option("database.password", os.environ["DATABASE_PASSWORD"])
        .option("database.dbname", given.database)
        .option("topic.prefix", "shop")
        .option("slot.name", "shop_databricks")
        .option("publication.name", "shop_changes")
        .option("table.include.list", r"public\.orders")
        .option("shape", "event")
        .load()
    )
    writer = changes.writeStream.format("delta").option("checkpointLocation", f"{given.volume}/checkpoint")
    writer.trigger(processingTime="10 seconds").start(f"{given.volume}/events").awaitTermination()


if __name__ == "__main__":
    main()
