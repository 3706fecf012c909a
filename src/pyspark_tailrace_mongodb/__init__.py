"""Lets Spark find the format `mongodb-cdc` without a register call: it imports every top-level module pyspark_*."""

from tailrace.spark.source import ChangeDataSource

__all__ = ["DefaultSource"]


class DefaultSource(ChangeDataSource):
    """MongoDB's committed changes as Debezium's events, see ChangeDataSource.

    Examples
    --------
    >>> changes = (
    ...     spark.readStream.format("mongodb-cdc")
    ...     .option("database.hostname", "localhost")
    ...     .option("database.user", "cdc")
    ...     .option("database.password", "...")
    ...     .option("database.dbname", "shop")
    ...     .option("topic.prefix", "shop")
    ...     .load()
    ... )  # doctest: +SKIP
    """

    connector = "mongodb"
