"""Lets Spark find the format `postgres-cdc` without a register call: it imports every top-level module pyspark_*."""

from tailrace.spark.source import ChangeDataSource

__all__ = ["DefaultSource"]


class DefaultSource(ChangeDataSource):
    """PostgreSQL's committed changes as Debezium's events, see ChangeDataSource.

    Examples
    --------
    >>> changes = (
    ...     spark.readStream.format("postgres-cdc")
    ...     .option("database.hostname", "localhost")
    ...     .option("database.user", "cdc")
    ...     .option("database.password", "...")
    ...     .option("database.dbname", "shop")
    ...     .option("topic.prefix", "shop")
    ...     .load()
    ... )  # doctest: +SKIP
    """

    connector = "postgres"
