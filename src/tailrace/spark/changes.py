"""The changes of a database as a stream of typed DataFrames, one for each table, for a notebook or an own program."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

# Re-exported: the package that has `read` names no module of Spark.
from pyspark.sql import SparkSession as SparkSession

from tailrace.config.dialects import from_mapping, read
from tailrace.connectors import registry
from tailrace.spark import tables
from tailrace.spark.sessions import has_java
from tailrace.spark.source import PROPERTIES_OPTION
from tailrace.spark.tables import TableChanges
from tailrace.transforms.registry import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Write = Callable[[Iterator[TableChanges], int], object]


class Changes:
    """The changes of a database; made by `tailrace.read`. Nothing is read before a query starts.

    frame     Spark's streaming DataFrame of the shape `arrow`: one for all tables, for `tailrace.observe` or a sink
    tables()  the same as one typed DataFrame for each table
    """

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    def tables(self) -> Tables:
        """The changes by table: see `Tables`."""
        return Tables(self.frame)


class Tables:
    """One typed DataFrame for each table, from one log: one query, one slot where there are slots, for all tables.

    `foreachBatch` is Spark's, with a function that gets tables where Spark's gets a frame:

        def write(tables, batch_id):
            for table, key, rows in tables:
                rows.select("op", "after.*").write.mode("overwrite").parquet(f"lake/{table}/batch={batch_id}")

        query = tailrace.read(spark, config).tables().foreachBatch(write).option("checkpointLocation", "state").start()

    table   TableId: `str(table)` is its name, `table.schema` and `table.table` are its parts
    key     names of the columns of its key, empty without one
    rows    DataFrame with a row for each change; tasks decode it when it is used

    | column of `rows` | type | |
    |---|---|---|
    | `op` | string | `c` created, `u` updated, `d` deleted, `r` read by a snapshot, `t` truncated |
    | `before`, `after` | struct of the table's columns | null where there is no such row |
    | `unchanged` | array of string | large columns that the log did not repeat: they are null in `after` |
    | `source` | struct | where the change comes from, as in Debezium's events |
    | `transaction` | struct | with `provide.transaction.metadata` |
    | `commit` | string | where the transaction was committed; sorts as the log does; null for rows of a snapshot |
    | `order` | bigint | the last change of a key in the micro-batch has the greatest (`commit`, `order`) |
    | `ts` | timestamp | when the change was read |

    Tables without changes in a micro-batch do not come. One that was altered within it comes once for each of its
    layouts, in log order. The micro-batch is cached while the function runs, so the log is read once however often
    `rows` is used. Spark repeats a micro-batch whose function failed, under the same `batch_id`: write so that this
    does no harm, for instance by mode `overwrite` into a folder with that number.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def foreachBatch(self, write: Write) -> DataStreamWriter:
        """Spark's writer, which calls `write(tables, batch_id)` for each micro-batch; see the class.

        `tables` is an iterator: go through it once, and use each DataFrame before the next comes. Give the writer a
        `checkpointLocation`, a trigger if you wish, and start it.
        """
        return self._frame.writeStream.foreachBatch(partial(_written, write))


def _written(write: Write, frame: DataFrame, batch_id: int) -> None:
    write(tables.tables(frame), batch_id)


def changes(spark: SparkSession, config: Mapping[str, object] | str | Path, connector: str | None) -> Changes:
    """The changes of a source by its properties, a mapping or a file; `tailrace.read` for users."""
    given = from_mapping(config) if isinstance(config, Mapping) else read(Path(config))
    entry = registry.of_source(connector, given)
    if has_java(spark):
        # Of a session of Spark Connect the server alone needs the drivers, and it says what is wrong.
        entry.load().resolve({**given, "shape": "arrow"}, CHECKS)
    reader = spark.readStream.format(entry.format).option(PROPERTIES_OPTION, json.dumps(given))
    return Changes(reader.option("shape", "arrow").load())
