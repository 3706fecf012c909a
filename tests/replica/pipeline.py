"""The pipeline of a case: its file, its runs in a shared Spark session or in a process, and how far it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import yaml
from pyspark.sql import SparkSession

from tailrace.connectors.offset import STREAM
from tailrace.errors import TailraceError
from tailrace.override import override
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.runner import Pipeline, Run
from tests.golden.databases.database import GoldenServer

# What is caught up with, and what is read again by itself, takes a few seconds on a busy machine.
PATIENCE_SECONDS = 200
# Signals that a run sends to itself are read at once, the catalogue is looked at often, and what cannot pass ends a run
# soon.
_QUICK = {
    "signal.poll.interval.ms": "100",
    "table.watch.interval.ms": "1000",
    "errors.max.retries": "3",
    "retriable.restart.connector.wait.ms": "100",
}
_QUICK_SINK = {"read_again": {"at_most_every": "1s"}}
_COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run", "--json"]
# A JVM that lives for seconds spends most of them on optimising its code.
_SPARK = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": 2,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_SHOWN_LINES = 15


class ReplicaPipeline(ABC):
    """A pipeline into a replica that is started, stopped and killed by a case. Errors are those of the run."""

    def __init__(
        self,
        server: GoldenServer,
        folder: Path,
        database: str,
        properties: Mapping[str, str],
        sink: Mapping[str, Any],
    ) -> None:
        self._server, self._folder = server, folder
        self.file, self.notifications = folder / "pipeline.yaml", folder / "notifications.jsonl"
        notices = {"notification.enabled.channels": "file", "notification.file": str(self.notifications)}
        self._own = {**notices, **_QUICK}
        self._content: dict[str, Any] = {
            "name": "replica",
            "source": {"connector": database, "config": {}},
            "sink": {"replica": {**_QUICK_SINK, **sink}},
            "checkpoint": str(folder / "checkpoint"),
            "trigger": "100ms",
            "spark": _SPARK,
        }
        self.configure(properties)

    def configure(self, properties: Mapping[str, str]) -> None:
        """Have the next start use these properties of the connector."""
        self._content["source"]["config"] = {**self._own, **properties}
        self.file.write_text(yaml.safe_dump(self._content, sort_keys=False), encoding="utf-8")
        self.__dict__.pop("definition", None)

    @cached_property
    def definition(self) -> Definition:
        """The pipeline's definition."""
        return load(self.file)

    def start(self) -> None:
        """Start, resuming from the checkpoint, and return once the log is read up to its end."""
        self._begin()
        self.catch_up()

    @abstractmethod
    def _begin(self) -> None:
        """Start."""

    @abstractmethod
    def stop(self) -> None:
        """Stop; the checkpoint stays."""

    @abstractmethod
    def kill(self) -> None:
        """Kill what a kill can reach, and go on at once."""

    @abstractmethod
    def _proceed(self) -> None:
        """Let it run for a moment. Raises what it ends with."""

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
            self._proceed()

    def _has(self, target: Any) -> bool:
        committed = position(self.definition.checkpoint).committed
        offset = {} if committed is None else committed.offset
        if offset.get("phase") != STREAM or offset.get("snapshots", {}).get("queue"):
            return False
        return bool(self._server.position(offset["position"]) >= target)


class SessionPipeline(ReplicaPipeline):
    """One that runs in a Spark session with others. A kill reaches the Python processes of the session."""

    def __init__(self, spark: SparkSession, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._spark = spark
        self._run: Run | None = None

    def _begin(self) -> None:
        self._run = Pipeline(self.definition, self._spark).start()

    @override
    def stop(self) -> None:
        if self._run is not None:
            self._run.stop()
            self._run = None

    @override
    def kill(self) -> None:
        """The query is started again by its run."""
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                command, parent = " ".join(process.cmdline()), process.parent()
                # Spark does not start its daemon again: what is killed are the daemon's workers.
                is_worker = (
                    "pyspark.daemon" in command and parent is not None and "daemon" in " ".join(parent.cmdline())
                )
                if is_worker or "reader_process" in command:
                    process.kill()

    def _proceed(self) -> None:
        if self._run is None:
            time.sleep(0.1)
        elif self._run.await_(0.1):
            raise TailraceError("the pipeline has ended by itself", where=str(self.file))


class ProcessPipeline(ReplicaPipeline):
    """One that runs as users run it, by `tailrace run`. A kill ends all of its processes at once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log, self._failpoint = self._folder / "run.log", self._folder / "failpoint"
        self._process: subprocess.Popen[bytes] | None = None
        self._is_armed = False

    def _begin(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_COMMAND, str(self.file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "TAILRACE_FAILPOINT": str(self._failpoint)},
            )

    @override
    def stop(self) -> None:
        self._end(signal.SIGTERM)

    @override
    def kill(self) -> None:
        self._end(signal.SIGKILL)
        self._begin()

    def arm(self, place: str, nth: int) -> None:
        """Let it kill itself when it comes to a place (tailrace.spark.failpoint) for the nth time from now on."""
        assert self._process is not None
        draft = self._failpoint.with_suffix(".draft")
        draft.write_text(f"{place} {nth} {self._process.pid}", encoding="utf-8")
        draft.rename(self._failpoint)
        self._is_armed = True

    def _proceed(self) -> None:
        time.sleep(0.1)
        if self._process is None or self._process.poll() is None:
            return
        if not self._is_armed or self._failpoint.exists():
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise TailraceError("the run has ended: " + "\n".join(lines[-_SHOWN_LINES:]), where=str(self.file))
        self._end(signal.SIGKILL)
        self._begin()

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, how)
        self._process.wait(PATIENCE_SECONDS)
        self._process = None
        # What the process did not come to is not its successor's, whose process group is another one.
        self._failpoint.unlink(missing_ok=True)
        self._is_armed = False
