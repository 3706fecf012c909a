"""Lets Spark find the format `db2-cdc` without a register call: it imports every top-level module pyspark_*."""

from tailrace.spark.source import ChangeDataSource

__all__ = ["DefaultSource"]


class DefaultSource(ChangeDataSource):
    """Db2's committed changes as Debezium's events, see ChangeDataSource.

    Examples
    --------
    >>> changes = (
    ...     spark.readStream.format("db2-cdc")
    ...     .option("database.hostname", "localhost")
    ...     .option("database.user", "db2inst1")
    ...     .option("database.password", "...")
    ...     .option("database.dbname", "TESTDB")
    ...     .option("topic.prefix", "shop")
    ...     .load()
    ... )  # doctest: +SKIP
    """

    connector = "db2"
