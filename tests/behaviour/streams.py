"""Runs the real Spark source for the behaviour tests: what it gave, or the sentence it failed with."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace.errors import TailraceError
from tailrace.pipeline.failure import from_spark
from tailrace.pipeline.runner import Run
from tests.conftest import Database


def properties(database: Database, **more: str) -> dict[str, str]:
    """A connector's properties for a test's database, with names of its own; `__` stands for a dot."""
    own = {"topic.prefix": "t", "slot.name": f"slot_{database.name}", "publication.name": "pub"}
    return {**database.properties, **own, **{name.replace("__", "."): value for name, value in more.items()}}


@dataclass
class Stream:
    """A query over the source that keeps its rows on the driver, micro-batch by micro-batch."""

    spark: SparkSession
    options: Mapping[str, str]
    checkpoint: Path
    batches: dict[int, list[Row]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def frame(self) -> DataFrame:
        """The stream as users open it."""
        return self.spark.readStream.format("postgres-cdc").options(**self.options).load()

    def start(self, **trigger: Any) -> StreamingQuery:
        """Start the query, each 100 ms a batch unless `trigger` says otherwise."""

        def keep(frame: DataFrame, number: int) -> None:
            self.batches[number] = frame.collect()

        writer = self.frame().writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        return started(writer.trigger(**(trigger or {"processingTime": "100 milliseconds"})))

    def run(self, **trigger: Any) -> list[Row]:
        """Run to the end of what is there now; the rows of all batches so far."""
        query = self.start(**(trigger or {"availableNow": True}))
        try:
            assert query.awaitTermination(250), "the query does not end"
        finally:
            query.stop()
        return self.rows

    @contextmanager
    def running(self, **trigger: Any) -> Iterator[StreamingQuery]:
        """A query that runs meanwhile."""
        query = self.start(**trigger)
        try:
            yield query
        finally:
            query.stop()

    @property
    def rows(self) -> list[Row]:
        """The rows of all batches, in order."""
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    def failure(self, **trigger: Any) -> TailraceError:
        """Run, and the sentence it fails with."""
        query = self.start(**(trigger or {"availableNow": True}))
        return failure_of(query)


def started(writer: DataStreamWriter) -> StreamingQuery:
    """The query once its source is there; begun again where a busy machine took longer than Spark waits (10 s)."""
    for attempt in range(8):
        time.sleep(attempt)  # for what the last attempt left behind
        query = writer.start()
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(0.05)
        if "failed to connect back" not in str(query.exception()):
            return query
    raise AssertionError("the machine is too busy for Spark to start a Python process in 10 seconds")


@contextmanager
def followed(run: Run) -> Iterator[None]:
    """Have a thread wait for a run, which starts its query again where a busy machine is too slow for Spark."""
    over = threading.Event()

    def follow() -> None:
        while not over.is_set() and not run.await_(0.2):
            pass

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        try:
            yield
        finally:
            over.set()
        following.result()


def failure_of(query: StreamingQuery, seconds: int = 200) -> TailraceError:
    """The sentence that a query ends with."""
    try:
        with pytest.raises(StreamingQueryException) as caught:
            query.awaitTermination(seconds)
    finally:
        query.stop()
    error = from_spark(caught.value)
    assert error is not None, caught.value
    return error


def eventually(condition: Callable[[], Any], query: StreamingQuery | None = None, seconds: float = 150) -> Any:
    """What `condition` gives once it is true; a failed query's error ends the wait."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert query is None or query.exception() is None, query.exception()
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return value


def payload(row: Row) -> dict[str, Any]:
    """The value's payload of a row of the `kafka` shape."""
    found: dict[str, Any] = json.loads(row["value"])["payload"]
    return found
