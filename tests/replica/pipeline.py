"""The pipeline of a case: its file, its runs in a shared Spark session, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from tailrace.connectors.offset import STREAM
from tailrace.errors import TailraceError
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.runner import Pipeline, Run
from tests.golden.databases.database import GoldenServer

# What is caught up with, and what is read again by itself, takes a few seconds on a busy machine.
PATIENCE_SECONDS = 120
# Signals that a run sends to itself are read at once, the catalogue is looked at often, and what cannot pass ends a run
# soon.
_QUICK = {
    "signal.poll.interval.ms": "100",
    "table.watch.interval.ms": "1000",
    "errors.max.retries": "2",
    "retriable.restart.connector.wait.ms": "100",
}
_QUICK_SINK = {"read_again": {"at_most_every": "1s"}}


class ReplicaPipeline:
    """A pipeline into a replica that is started and stopped by a case. Errors are those of the run."""

    def __init__(
        self,
        spark: SparkSession,
        server: GoldenServer,
        folder: Path,
        database: str,
        properties: Mapping[str, str],
        sink: Mapping[str, Any],
    ) -> None:
        self._spark, self._server = spark, server
        self.file, self.notifications = folder / "pipeline.yaml", folder / "notifications.jsonl"
        notices = {"notification.enabled.channels": "file", "notification.file": str(self.notifications)}
        content = {
            "name": "replica",
            "source": {"connector": database, "config": {**notices, **_QUICK, **properties}},
            "sink": {"replica": {**_QUICK_SINK, **sink}},
            "checkpoint": str(folder / "checkpoint"),
            "trigger": "100ms",
        }
        self.file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        self._run: Run | None = None

    @property
    def definition(self) -> Definition:
        """The pipeline's definition."""
        return load(self.file)

    def start(self) -> None:
        """Start, resuming from the checkpoint, and return once the log is read up to its end."""
        self._run = Pipeline(self.definition, self._spark).start()
        self.catch_up()

    def stop(self) -> None:
        """Stop; the checkpoint stays."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def catch_up(self) -> None:
        """Return once everything that the server has in its log now is written. Raises what the run ends with."""
        target = self._server.log_end()
        self.until(lambda: self._has(target), f"the log is not read up to {target}")

    def until(self, condition: Callable[[], bool], complaint: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for a condition while the pipeline runs. Raises TimeoutError, and what the run ends with."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{complaint} in {seconds:.0f} s")
            if self._run is None:
                time.sleep(0.1)
            elif self._run.await_(0.1):
                raise TailraceError("the pipeline has ended by itself", where=str(self.file))

    def _has(self, target: Any) -> bool:
        committed = position(self.definition.checkpoint).committed
        offset = {} if committed is None else committed.offset
        if offset.get("phase") != STREAM or offset.get("snapshots", {}).get("queue"):
            return False
        return bool(self._server.position(offset["position"]) >= target)
