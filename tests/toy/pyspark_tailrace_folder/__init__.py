"""Lets Spark find the format `folder-cdc` without a register call: it imports every top-level module pyspark_*."""

from tailrace.spark.source import ChangeDataSource


class DefaultSource(ChangeDataSource):
    """A folder's committed changes as Debezium's events."""

    connector = "folder"
