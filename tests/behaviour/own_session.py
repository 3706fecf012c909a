"""A user's program: a session without any setting of Tailrace's, and a query under different kinds of load.

Run as a program of its own, since a test process has one Spark session. It takes a JSON object on the command line
(`master`, `options` of the source, `checkpoint`) and then a command a line, each of which it answers with a line:
`load NAME BATCHES` goes through so many micro-batches of one of LOADS, `drain` reads all there is and tells how many
keys and rows came, `stop` stops the query. It leaves when there are no more commands.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable  # as README says

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

# How many Python tasks a micro-batch's rows go through, at the same time; 0: Spark's own sink takes them.
LOADS = {"alone": 0, "two": 2, "four": 4}


class Program:
    """The query, and what has come."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.batches = self.tasks = self.rows = 0
        self.keys: set[tuple[str, str]] = set()

    def run(self) -> None:
        """Start the query, and do what is said."""
        builder = SparkSession.builder.master(self.given["master"]).config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate()
        changes = session.readStream.format("postgres-cdc").options(**self.given["options"]).load()
        writer = changes.writeStream.foreachBatch(self.take).option("checkpointLocation", self.given["checkpoint"])
        query = writer.trigger(processingTime="100 milliseconds").start()
        for command in sys.stdin:
            name, *arguments = command.split()
            print({"load": self.load, "drain": self.drain, "stop": stop}[name](query, *arguments), flush=True)  # type: ignore[operator]
        session.stop()

    def load(self, query: StreamingQuery, name: str, batches: str) -> str:
        """Go through so many micro-batches."""
        self.tasks = LOADS[name]
        wanted = self.batches + int(batches)
        while self.batches < wanted:
            if query.exception() is not None:
                raise SystemExit(str(query.exception()))
            time.sleep(0.02)
        return name

    def drain(self, query: StreamingQuery) -> str:
        """Read what there is."""
        self.tasks = 0
        query.processAllAvailable()
        return f"{len(self.keys)} {self.rows}"

    def take(self, frame: DataFrame, number: int) -> None:
        """A sink; of Python, of so many tasks, if the load says so."""
        frame = frame.select("topic", "key")
        if self.tasks:
            frame = frame.repartition(self.tasks).mapInArrow(_same, frame.schema)
        found = frame.collect()
        self.keys.update((row["topic"], row["key"]) for row in found)
        self.rows += len(found)
        self.batches += 1


def stop(query: StreamingQuery) -> str:
    """Stop the query; the session goes on."""
    query.stop()
    return "stopped"


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    Program(json.loads(sys.argv[1])).run()
