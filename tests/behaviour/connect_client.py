"""A client of Spark Connect: a program without Java that reads a database's changes into one sink after the other.

It takes the server's URL on the command line, and then a JSON object a line: `options` of the source; `sink`, a name of
SINKS; `checkpoint`; `target`, the sink's folder, brokers or file; and `more`, what this sink takes besides. It answers
each with an object: `told`, what the sink returns, or `error`; and `has_java`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

if TYPE_CHECKING:
    from tailrace.spark.tables import TableChanges

Given = dict[str, Any]


def stream(session: SparkSession, given: Given, shape: str) -> DataFrame:
    """The source."""
    reader = session.readStream.format(given.get("format", "postgres-cdc")).options(**given["options"])
    return reader.option("shape", shape).load()


def finish(writer: DataStreamWriter, given: Given) -> list[Any]:
    """Read all there is; the numbers of the micro-batches."""
    query = writer.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True).start()
    assert query.awaitTermination(180), "the query does not end"
    return [query.id, [progress["numInputRows"] for progress in query.recentProgress]]


def kafka(session: SparkSession, given: Given) -> Any:
    """The Kafka sink."""
    from tailrace.connectors.postgres.config import resolve
    from tailrace.connectors.postgres.position import source_block
    from tailrace.sinks.kafka.sink import KafkaSink

    config = resolve(given["options"])
    sink = KafkaSink({"bootstrap.servers": given["target"]}, config, source_block(config), **given.get("more", {}))
    return finish(sink.attach(stream(session, given, sink.shape)), given)


def replica(session: SparkSession, given: Given) -> Any:
    """The replica, of the format and the mode that `more` names."""
    from tailrace.sinks.replica.layout import ReplicaLayout
    from tailrace.sinks.replica.modes import LATEST, Mode
    from tailrace.sinks.replica.sink import ReplicaSink

    more = dict(given.get("more", {}))
    layout = ReplicaLayout(mode=Mode.of(more.pop("mode", LATEST), {}))
    sink = ReplicaSink(given["target"], layout=layout, **more)
    return finish(stream(session, given, "arrow").writeStream.foreachBatch(sink.write), given)  # type: ignore[arg-type]


def beside(session: SparkSession, given: Given) -> Any:
    """The Delta replica, while the session has another query."""
    other = session.readStream.format("rate").load().writeStream.format("noop")
    query = other.option("checkpointLocation", given["checkpoint"] + "-other").start()
    try:
        return replica(session, given)
    finally:
        query.stop()


def files(session: SparkSession, given: Given) -> Any:
    """A file sink, the one that `more` names."""
    from tailrace.sinks.files import JsonLinesSink, ParquetSink

    kind = {"parquet": ParquetSink, "json": JsonLinesSink}[given["more"]["kind"]]
    sink = kind(given["target"])
    return finish(sink.attach(stream(session, given, sink.shape)), given)


def tables(session: SparkSession, given: Given) -> Any:
    """A user's own function, with typed frames of each table."""
    import tailrace

    folder = given["target"]

    def write(tables: Iterator[TableChanges], batch_id: int) -> None:
        for table, key, rows in tables:
            typed = rows.selectExpr("op", "coalesce(after, before) AS row").select("op", "row.*")
            typed.sortWithinPartitions(*key).write.mode("append").parquet(f"{folder}/{table}/batch={batch_id}")

    return finish(tailrace.read(session, given["options"]).tables().foreachBatch(write), given)


def typed(session: SparkSession, given: Given) -> Any:
    """The typed shape of one table, VARIANT, and the bounded read."""
    import tailrace

    reader = session.read.format("postgres-cdc").options(**given["options"])
    rows = reader.option("shape", "table").load().orderBy("after.id").selectExpr("after.id", "after.amount").collect()
    event = reader.option("shape", "event").load()
    amounts = tailrace.variants(event).selectExpr("variant_get(after, '$.amount', 'decimal(9,2)') AS amount").collect()
    return [[list(map(str, row)) for row in rows], sorted(str(row["amount"]) for row in amounts)]


def pipeline(session: SparkSession, given: Given) -> Any:
    """A pipeline file, which needs Java."""
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.runner import Pipeline

    Pipeline(load(Path(given["target"])), session=session).start()


SINKS = {each.__name__: each for each in (kafka, replica, beside, files, tables, typed, pipeline)}


def has_java() -> bool:
    """Whether this process has started Java, or is connected to one."""
    module = sys.modules.get("pyspark.core.context")
    return module is not None and module.SparkContext._jvm is not None


def answer(session: SparkSession, given: Given) -> Given:
    """What a sink told, or how it failed."""
    try:
        found = {"told": SINKS[given["sink"]](session, given)}
    except Exception as error:  # the test examines it
        found = {"error": str(error)}
    return {**found, "has_java": has_java()}


if __name__ == "__main__":
    session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    for line in sys.stdin:
        print(json.dumps(answer(session, json.loads(line))), flush=True)
    session.stop()
