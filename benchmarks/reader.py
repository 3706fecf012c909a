"""The measured process: runs one Tailrace pipeline on request, and reports what it read.

It takes a line of JSON on stdin (`content`, a pipeline's content; `folder`; `kind`), says READY when Spark runs, waits
for a line, and prints its result as JSON. Kinds: `backlog` reads all there is, `rows` does so into rows of Spark,
`latency` notes when rows come, until a line says how many there are, `sent` does so with the time in the row, `follow`
reads until it has as many as a line says; all say STREAMING after the first micro-batch. `first` waits for the first
row alone. `own` is a query of one's own with a trigger by time, which ends when it has read all. `followed` does what
`backlog` does, and asks the run twice a second what it does, as `tailrace run` does; `served` is that with `--http`,
whose metrics are asked for every five seconds, as deploy/monitoring/prometheus.yaml does; `uncounted` is `followed`
without the counts by operation.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace.operate.serving import SinglePipeline, serving
from tailrace.operate.steering import Steering
from tailrace.operate.watch import RunWatch
from tailrace.pipeline import query as pipeline_query
from tailrace.pipeline.definition import Definition, HttpSection, from_content
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.pipeline.session import local_session

PATIENCE_SECONDS = 120
ASKED_SECONDS, LOOKED_SECONDS, TOLD_SECONDS, FOLLOWED_SECONDS, SCRAPE_SECONDS = 2.0, 0.05, 0.2, 0.5, 5.0
SENT = re.compile(r"sent\W*(?:\$numberLong\W*)?(\d+)", re.IGNORECASE)
MOST_SECONDS = 900


@dataclass
class Noted:
    """Notes of each row when it was committed and when `foreachBatch` had it; microseconds since 1970."""

    seen: list[tuple[int, int]] = field(default_factory=list)
    shape: str = "event"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that keeps the times alone."""
        return frame.writeStream.foreachBatch(self._note)

    def _note(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.select("source.ts_us").collect()
        now = time.time_ns() // 1000
        self.seen += [(row["ts_us"], now) for row in rows]


@dataclass
class Sent(Noted):
    """The same with the time that stands in the row."""

    def _note(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.select("after").collect()
        now = time.time_ns() // 1000
        self.seen += [(int(found[1]), now) for row in rows if (found := SENT.search(row["after"] or ""))]


def main() -> None:
    """Serve one run."""
    task = json.loads(sys.stdin.readline())
    folder = Path(task["folder"])
    definition = from_content(task["content"], base=folder, where="benchmark")
    rows_in_java = task["kind"] not in ("backlog", "followed", "served", "uncounted") or definition.rows_in_java
    session = local_session("benchmark", folder / "spark.log", definition.spark, rows_in_java=rows_in_java)
    print("READY", flush=True)
    sys.stdin.readline()
    kinds = {
        "backlog": backlog,
        "rows": rows,
        "latency": latency,
        "sent": sent,
        "follow": follow,
        "first": first,
        "own": own,
        "followed": followed,
        "served": served,
        "uncounted": uncounted,
    }
    result = kinds[task["kind"]](definition, session)
    print(json.dumps(result), flush=True)
    sys.stdin.readline()
    session.stop()


def backlog(definition: Definition, session: Any, target: Any = None) -> dict[str, Any]:
    """Reads all there is. Time runs from the start of the first micro-batch with rows to the end of the last one."""
    run = Pipeline(definition, session, target).start()
    (query,) = session.streams.active
    streaming(definition, run)
    run.await_()
    return _summary(run, query)


def followed(
    definition: Definition, session: Any, said: Callable[[RunProgress], object] = lambda progress: None
) -> dict[str, Any]:
    """The same, and `said` is told twice a second what the run does."""
    run = Pipeline(definition, session).start()
    (query,) = session.streams.active
    streaming(definition, run)
    while not run.await_(FOLLOWED_SECONDS):
        said(run.progress())
    return _summary(run, query)


def served(definition: Definition, session: Any) -> dict[str, Any]:
    """The same while its metrics are served and asked for, as often as the configuration for Prometheus does."""
    watch, over = RunWatch(definition), threading.Event()
    watch.starting()

    def ask(url: str) -> None:
        while not over.wait(SCRAPE_SECONDS):
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                answer.read()

    with serving(SinglePipeline(watch, Steering()), HttpSection(port=0)) as url:
        asking = threading.Thread(target=ask, args=(url,))
        asking.start()
        summary = followed(definition, session, watch.said)
        over.set()
        asking.join()
    watch.close()
    return summary


def uncounted(definition: Definition, session: Any) -> dict[str, Any]:
    """The same without the counts of changes by operation."""
    pipeline_query.observe = lambda frame: frame  # type: ignore[attr-defined]
    return followed(definition, session)


def _summary(run: Run, query: Any) -> dict[str, Any]:
    batches = [json.loads(progress.json) for progress in query.recentProgress]
    batches = [batch for batch in batches if batch["numInputRows"]]
    begin, last = _time(batches[0]), _time(batches[-1])
    return {
        "rows": run.progress().events,
        "seconds": last + batches[-1]["durationMs"]["triggerExecution"] / 1000 - begin,
        "batches": len(batches),
    }


@dataclass
class Rows:
    """Every record of the `kafka` shape into Spark's own null sink, which takes each row."""

    shape: str = "kafka"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that reads all of `frame` and keeps nothing."""
        return frame.writeStream.format("noop")


def rows(definition: Definition, session: Any) -> dict[str, Any]:
    """The same, all records as rows of Spark."""
    return backlog(definition, session, Rows())


def sent(definition: Definition, session: Any) -> dict[str, Any]:
    """As `latency`, with the times that stand in the rows."""
    return latency(definition, session, Sent())


def latency(definition: Definition, session: Any, noted: Noted | None = None) -> dict[str, Any]:
    """Follows the log until told how many rows there are, and has them or waited for them; gives the times of all."""
    noted = noted or Noted()
    run = Pipeline(definition, session, noted).start()
    streaming(definition, run)
    expected, deadline = int(sys.stdin.readline()), time.monotonic() + PATIENCE_SECONDS
    while len(noted.seen) < expected and time.monotonic() < deadline:
        run.await_(0.1)
    run.stop()
    return {"seen": noted.seen}


def follow(definition: Definition, session: Any) -> dict[str, Any]:
    """Reads what is shown once it streams, until it has as many rows as it is told; time as of a backlog."""
    run = Pipeline(definition, session).start()
    (query,) = session.streams.active
    streaming(definition, run)
    expected, deadline = int(sys.stdin.readline()), time.monotonic() + MOST_SECONDS
    while run.progress().events < expected and time.monotonic() < deadline:
        await_commit(definition, run)
    run.stop()
    return _summary(run, query)


def await_commit(definition: Definition, run: Run) -> None:
    """Waits until a micro-batch is committed, or for a while, by the checkpoint's files.

    What is asked of Spark costs CPU in Python and in Java: asked 20 times a second it was most of that of a run whose
    server is slow.
    """
    until, before = time.monotonic() + ASKED_SECONDS, _commits(definition)
    while _commits(definition) == before and time.monotonic() < until:
        time.sleep(LOOKED_SECONDS)
    # Its progress is told a moment later.
    run.await_(TOLD_SECONDS)


def _commits(definition: Definition) -> int:
    return len(list((Path(definition.checkpoint) / "commits").glob("*")))


@dataclass
class First:
    """Notes when `foreachBatch` has the first row; seconds."""

    seen: float | None = None
    shape: str = "event"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that takes one row of a batch and no more."""
        return frame.writeStream.foreachBatch(self._note)

    def _note(self, frame: DataFrame, batch_id: int) -> None:
        if self.seen is None and frame.take(1):
            self.seen = time.monotonic()


def first(definition: Definition, session: Any) -> dict[str, Any]:
    """Seconds from a query's start to its first row."""
    noted, begin = First(), time.monotonic()
    run = Pipeline(definition, session, noted).start()
    while noted.seen is None and time.monotonic() < begin + PATIENCE_SECONDS:
        run.await_(0.1)
    run.stop()
    if noted.seen is None:
        raise SystemExit("no row came")
    return {"seconds": noted.seen - begin}


def own(definition: Definition, session: Any) -> dict[str, Any]:
    """The micro-batches of a query without a pipeline, which nothing tells of its start on Spark 4.0 and 4.1."""
    reader = session.readStream.format("postgres-cdc").options(**definition.properties(), shape="kafka")
    writer = reader.load().writeStream.format("noop").option("checkpointLocation", definition.checkpoint)
    query = writer.trigger(processingTime="0 seconds").start()
    query.processAllAvailable()
    query.stop()
    batches = [json.loads(progress.json) for progress in query.recentProgress]
    found = [(batch["numInputRows"], batch["durationMs"].get("triggerExecution", 0) / 1000) for batch in batches]
    return {"batches": [each for each in found if each[0]]}


def streaming(definition: Definition, run: Run) -> None:
    """Says so once the first micro-batch is over. It has no rows and prepares the log, or it is a whole snapshot."""
    while run.progress().batch is None:
        until = time.monotonic() + ASKED_SECONDS
        while not _commits(definition) and time.monotonic() < until:
            time.sleep(LOOKED_SECONDS)
        run.await_(LOOKED_SECONDS)
    print("STREAMING", flush=True)


def _time(batch: dict[str, Any]) -> float:
    return datetime.fromisoformat(batch["timestamp"].replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    main()
