"""Lets Spark find the format `sqlserver-cdc` without a register call: it imports every top-level module pyspark_*."""

from tailrace.spark.source import ChangeDataSource

__all__ = ["DefaultSource"]


class DefaultSource(ChangeDataSource):
    """SQL Server's committed changes as Debezium's events, see ChangeDataSource.

    Examples
    --------
    >>> changes = (
    ...     spark.readStream.format("sqlserver-cdc")
    ...     .option("database.hostname", "localhost")
    ...     .option("database.user", "cdc")
    ...     .option("database.password", "...")
    ...     .option("database.dbname", "shop")
    ...     .option("topic.prefix", "shop")
    ...     .load()
    ... )  # doctest: +SKIP
    """

    connector = "sqlserver"
