"""Tailrace: change data capture as a Spark streaming source, with Debezium's events and properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.errors import TailraceError
from tailrace.version import __version__

if TYPE_CHECKING:
    from tailrace.pipeline.definition import Definition
    from tailrace.spark.changes import Changes, SparkSession
    from tailrace.spark.tables import DataFrame, TableChanges

__all__ = ["TailraceError", "__version__", "complete_until", "observe", "read", "signal", "tables", "variants"]


def observe(frame: DataFrame) -> DataFrame:
    """A stream of the shape `arrow` or `event` whose changes are counted in Spark's progress, in any session.

    `query.lastProgress.observedMetrics["tailrace"]` has `reads`, `creates`, `updates`, `deletes`, `truncates`,
    `messages` and, of the shape `arrow`, `transactions` of the micro-batch. Raises ConfigError for another shape.
    """
    # Imported late: Spark imports this package, for its data source, in each of its processes.
    from tailrace.spark.observed import observe

    return observe(frame)


def read(spark: SparkSession, config: Mapping[str, object] | str | Path, *, connector: str | None = None) -> Changes:
    """The changes of a database as a stream, in any session: the snapshot as `snapshot.mode` says, then the log.

    `config` are the properties of Debezium's connector: a mapping, or the path of a file of them (JSON, .properties).
    `connector.class` among them, or `connector`, the name of one in `tailrace.connectors.registry.names()`, says which
    database; without either it is `registry.DEFAULT`.

        changes = tailrace.read(spark, {"database.hostname": "localhost", "database.dbname": "shop", ...})

        def write(tables, batch_id):
            for table, key, rows in tables:
                rows.select("op", "after.*").write.mode("overwrite").parquet(f"lake/{table}/batch={batch_id}")

        query = changes.tables().foreachBatch(write).option("checkpointLocation", "state").start()

    `help(changes.tables())` describes the columns of `rows`. Raises ConfigError for a wrong configuration; in a session
    of Spark Connect the server examines it, and Spark's error has the sentence.
    """
    from tailrace.spark.changes import changes

    return changes(spark, config, connector)


def signal(
    pipeline: Definition | str | Path, type: str, data: Mapping[str, Any] | None = None, *, id: str | None = None
) -> str:
    """Send a signal to a pipeline, running or not, and return the signal's id. Raises ConfigError.

    `pipeline` is its file or definition, or the folder that `signal.folder` names; `type` and `data` are Debezium's:
    `signal("pipeline.yaml", "execute-snapshot", {"data-collections": ["public.orders"]})`.
    """
    from tailrace.pipeline.signaling import send

    return send(pipeline, type, data or {}, id).id


def tables(frame: DataFrame) -> Iterator[TableChanges]:
    """The changes of a micro-batch of the shape `arrow`, one typed DataFrame for each table, in any `foreachBatch`.

    `for table, key, rows in tables(frame)`: the table's TableId, the names of its key's columns, and the rows (see
    `tailrace.spark.tables.TableChanges`). Tasks decode the rows when you use them. A table that was altered within the
    micro-batch comes once for each of its layouts, in log order. The micro-batch is cached until the loop ends. Raises
    ConfigError for a frame of another shape.
    """
    from tailrace.spark import tables

    return tables.tables(frame)


def complete_until(pipeline: Definition | str | Path, table: str | None = None) -> datetime | None:
    """Up to which time of the source everything is in the sink, in UTC: every transaction whose commit had returned
    to its client before that time, by the clock of the server. It never goes back.

    `pipeline` is its file or definition, running or not; `table` a table of a replica, named as in signals:
    `complete_until("pipeline.yaml", "public.orders")`. The value of a table stays where it was while the table is read
    again, incomplete or set aside; that of the pipeline while any table is. None: nothing is known yet. Raises
    ConfigError for a wrong file, TailraceError for a checkpoint that cannot be read.
    """
    from tailrace.pipeline.complete import until

    return until(pipeline, table)


def variants(frame: DataFrame) -> DataFrame:
    """A frame of the shape `event` whose `key`, `before` and `after` are Spark's VARIANT; Java parses their JSON."""
    from tailrace.spark.tables import variants

    return variants(frame)
