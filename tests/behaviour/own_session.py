"""A user's program: a session without any setting of Tailrace's, and a query that goes through different kinds of load.

Run as a program of its own, since a test process has one Spark session. It takes a JSON object on the command line:
`master`, `options` of the source, the `checkpoint`, and the `load`, names of LOADS with a number of micro-batches each.
It prints a line when a load begins (`load NAME`) and one at the end (`end`), then waits for a line before it leaves.
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

# How many Python tasks a micro-batch's rows go through, at the same time; 0: Spark's own sink takes them.
LOADS = {"alone": 0, "beside two tasks": 2, "beside four tasks": 4}


class Program:
    """The query, and what it goes through."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.batches = 0
        self.tasks = 0

    def run(self) -> None:
        """The loads one after another."""
        builder = SparkSession.builder.master(self.given["master"]).config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate()
        changes = session.readStream.format("postgres-cdc").options(**self.given["options"]).load()
        writer = changes.writeStream.foreachBatch(self.take).option("checkpointLocation", self.given["checkpoint"])
        query = writer.trigger(processingTime="100 milliseconds").start()
        for name, batches in self.given["load"]:
            self.tasks = LOADS[name]
            print(f"load {name}", flush=True)
            wanted = self.batches + batches
            while self.batches < wanted:
                if query.exception() is not None:
                    raise SystemExit(str(query.exception()))
                time.sleep(0.05)
        print("end", flush=True)
        sys.stdin.readline()
        query.stop()
        print("stopped", flush=True)
        sys.stdin.readline()
        session.stop()

    def take(self, frame: DataFrame, number: int) -> None:
        """A sink; of Python, of so many tasks, if the load says so."""
        if self.tasks:
            frame = frame.repartition(self.tasks).mapInArrow(_same, frame.schema)
        frame.write.format("noop").mode("append").save()
        self.batches += 1


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    Program(json.loads(sys.argv[1])).run()
