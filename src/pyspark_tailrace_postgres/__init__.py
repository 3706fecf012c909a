"""Lets Spark find the format `postgres-cdc` without a register call: it imports every top-level module pyspark_*."""

from tailrace.spark.source import PostgresDataSource as DefaultSource

__all__ = ["DefaultSource"]
