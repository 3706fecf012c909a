"""Writes the changes of a PostgreSQL database to S3, as a streaming job of AWS Glue (see template.yaml)."""

from __future__ import annotations

import json
import sys

import boto3
from awsglue.utils import getResolvedOptions
from pyspark.sql import SparkSession

from pyspark_tailrace_postgres import DefaultSource


def main() -> None:
    """Read until the job is ended."""
    given = getResolvedOptions(sys.argv, ["folder", "secret"])
    answer = boto3.client("secretsmanager").get_secret_value(SecretId=given["secret"])
    database = json.loads(answer["SecretString"])
    spark = SparkSession.builder.getOrCreate()
    # Whether Glue finds the format by itself is not known.
    spark.dataSource.register(DefaultSource)
    changes = (
        spark.readStream.format("postgres-cdc")
        .option("database.hostname", database["host"])
        .option("database.port", str(database.get("port", 5432)))
        .option("database.user", database["username"])
        .option("database.password", database["password"])
        .option("database.dbname", database["dbname"])
        .option("topic.prefix", "shop")
        .option("slot.name", "shop_glue")
        .option("publication.name", "shop_changes")
        .option("table.include.list", r"public\.orders")
        .option("shape", "event")
        .load()
    )
    writer = changes.writeStream.format("parquet").option("checkpointLocation", f"{given['folder']}/checkpoint")
    writer.trigger(processingTime="10 seconds").start(f"{given['folder']}/events").awaitTermination()


if __name__ == "__main__":
    main()
