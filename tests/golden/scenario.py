"""Runs a golden scenario through the source on a real server, with Spark or without, and compares what comes out."""

from __future__ import annotations

import json
import pickle
import re
import string
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tailrace.config.converter_names import JSON
from tailrace.connectors import registry
from tailrace.connectors.offset import SNAPSHOT, STREAM
from tailrace.override import override
from tailrace.pipeline.checkpoint import position
from tailrace.spark.reader import ChangeReader
from tailrace.spark.source import ChangeDataSource
from tests.behaviour.streams import started
from tests.golden.avro_records import AvroReader, read, recorded, uses_registry
from tests.golden.avro_records import registry as registry_of_records
from tests.golden.compare import HEARTBEATS, Event, compare
from tests.golden.databases.database import GoldenServer
from tests.golden.script import Directive

# For so long, and so many steps on a machine where these take long, no event may arrive before a wait is over.
SETTLE_SECONDS, SETTLE_STEPS = 0.2, 4
PATIENCE_SECONDS = 200
UNSEEN = "timestamp"  # no recording has it, and an event router's may be beyond Python's years


@dataclass(frozen=True)
class Scenario:
    """A folder of the format that the README beside this file describes."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What `scenario.json` says, if there is one."""
        path = self.folder / "scenario.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    @property
    def settle_seconds(self) -> float:
        """How long no event may arrive before a wait is over."""
        return float(self.settings.get("settle_seconds", SETTLE_SECONDS))

    @cached_property
    def given(self) -> dict[str, str]:
        """The connector's properties as they were recorded, with placeholders."""
        config = json.loads((self.folder / "connector.json").read_text(encoding="utf-8"))["config"]
        return {name: str(value) for name, value in config.items()}

    @cached_property
    def endless(self) -> Sequence[re.Pattern[str]]:
        """The topics of heartbeats, and of what they cause: a wait does not wait for their end."""
        return [re.compile(topic) for topic in (HEARTBEATS, *self.settings.get("collapse_topics", ()))]

    @property
    def database(self) -> str:
        """The name of its connector."""
        return registry.of_source(None, self.given).name

    def properties(self, server: GoldenServer) -> dict[str, str]:
        """The connector's properties for that server; known faults of the reference are to be copied."""
        return {"compat.faults": "true", "header.converter": JSON, **server.settings, **self.filled(server)}

    def filled(self, server: GoldenServer) -> dict[str, str]:
        """The properties as they were recorded, for that server."""
        places = dict(server.places())
        if uses_registry(self.given):
            places["registry"] = registry_of_records().base
        return {name: string.Template(value).safe_substitute(places) for name, value in self.given.items()}

    def differences(self, events: list[Event]) -> list[str]:
        """A line for each place where the events are not the recorded ones, but for those that `explained` matches."""
        lines = map(str, compare(recorded(self.folder), events, self.settings))
        return [line for line in lines if not any(re.search(each, line) for each in self.settings.get("explained", ()))]


class Stream(Protocol):
    """The connector under test."""

    @property
    def events(self) -> list[Event]:
        """All events so far, in order of arrival."""

    def start(self) -> None:
        """Start, resuming from the stored offset, and return once the stream has caught up."""

    def wait(self, settle_seconds: float) -> None:
        """Return once all of the server's log is read and no event has arrived for so long. Raises what failed."""

    def stop(self) -> None:
        """Stop; the offset stays."""


class Waiting(Stream, ABC):
    """How a stream waits until it has caught up."""

    def __init__(self, server: GoldenServer, scenario: Scenario) -> None:
        self._server = server
        properties = scenario.properties(server)
        self._properties, self._headers = json.dumps(properties), properties["header.converter"]
        self._avro = AvroReader(properties) if uses_registry(properties) else None
        self._endless = scenario.endless
        self._streams = bool(scenario.settings.get("streams", True))

    @property
    @abstractmethod
    @override
    def events(self) -> list[Event]: ...

    @abstractmethod
    def _proceed(self) -> bool:
        """Read on, or let others do so for a moment. Whether the stream goes on; raises what failed."""

    @abstractmethod
    def _offset(self) -> dict[str, Any]:
        """Up to where events have arrived; empty before the first one."""

    @override
    def wait(self, settle_seconds: float) -> None:
        target = self._server.log_end()
        deadline = time.monotonic() + PATIENCE_SECONDS
        seen, since, quiet = -1, time.monotonic(), 0
        while not (self._reached(target) and time.monotonic() - since >= settle_seconds and quiet >= SETTLE_STEPS):
            if not self._proceed():
                return
            count = sum(1 for event in self.events if not self._is_endless(event["topic"]))
            quiet += 1
            if count != seen:
                seen, since, quiet = count, time.monotonic(), 0
            if time.monotonic() > deadline:
                raise TimeoutError(f"the stream did not reach {target} in {PATIENCE_SECONDS} s: {self._offset()}")

    def _event(self, row: dict[str, Any]) -> Event:
        if self._avro is not None:
            return self._read(self._avro, row)
        return {
            "topic": row["topic"],
            "partition": row["partition"],
            "key": None if row["key"] is None else json.loads(row["key"]),
            "value": None if row["value"] is None else json.loads(row["value"]),
            "headers": {header["key"]: self._header(header["value"]) for header in row["headers"] or ()},
        }

    def _read(self, reader: AvroReader, row: dict[str, Any]) -> Event:
        headers = {each["key"]: each["value"] for each in row["headers"] or ()}
        found = reader.event(row, headers)
        own = {name: self._header(each) for name, each in headers.items() if name not in found["added"]}
        return read({"topic": row["topic"], "partition": row["partition"], **found, "headers": own})

    def _header(self, value: bytes | None) -> Any:
        if self._headers != JSON:
            return None if value is None else bytes(value).decode()
        return None if value is None else json.loads(value)

    def _is_endless(self, topic: str) -> bool:
        return any(pattern.search(topic) for pattern in self._endless)

    def _reached(self, target: Any) -> bool:
        offset = self._offset()
        is_reading = bool(offset.get("snapshots", {}).get("queue"))
        if not self._streams:
            return offset.get("phase") == SNAPSHOT and "reading" not in offset
        if offset.get("phase") != STREAM or is_reading:
            return False
        return bool(self._server.position(offset["position"]) >= target)


class SparkStream(Waiting):
    """A streaming query that collects its events and keeps a checkpoint. Implements Stream."""

    def __init__(self, spark: SparkSession, server: GoldenServer, scenario: Scenario, work: Path) -> None:
        super().__init__(server, scenario)
        self._spark, self._work = spark, work
        self._batches: dict[int, list[Event]] = {}  # a batch that is repeated after a stop replaces its first try
        self._query: StreamingQuery | None = None

    @property
    @override
    def events(self) -> list[Event]:
        return [event for number in sorted(self._batches) for event in self._batches[number]]

    @override
    def start(self) -> None:
        frame = (
            self._spark.readStream.format(self._server.format)
            .option("tailrace.properties", self._properties)
            .option("shape", "kafka")
            .load()
        )
        writer = frame.writeStream.foreachBatch(self._collect).trigger(processingTime="100 milliseconds")
        self._query = started(writer.option("checkpointLocation", str(self._work / "checkpoint")))
        self.wait(SETTLE_SECONDS)

    @override
    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None

    def _collect(self, frame: DataFrame, number: int) -> None:
        self._batches[number] = [self._event(row.asDict(recursive=True)) for row in frame.drop(UNSEEN).collect()]

    def _offset(self) -> dict[str, Any]:
        committed = position(str(self._work / "checkpoint")).committed
        return {} if committed is None else committed.offset

    def _proceed(self) -> bool:
        return self._query is not None and not self._query.awaitTermination(0.1)  # type: ignore[arg-type]  # raises the query's error


class DirectStream(Waiting):
    """The source's reader without Spark, called as Spark calls it. Implements Stream.

    It takes a fraction of the time. Offsets become JSON and readers are pickled, as between Spark's processes.
    """

    def __init__(self, server: GoldenServer, scenario: Scenario) -> None:
        super().__init__(server, scenario)
        self._source = type("Source", (ChangeDataSource,), {"connector": scenario.database})
        self._at: dict[str, Any] = {}
        self._reader: ChangeReader | None = None
        self._events: list[Event] = []

    @property
    @override
    def events(self) -> list[Event]:
        return self._events

    @override
    def start(self) -> None:
        source = self._source({"tailrace.properties": self._properties, "shape": "kafka"})
        self._reader = source.streamReader(source.schema())
        self._copy: ChangeReader = pickle.loads(cloudpickle.dumps(self._reader))  # type: ignore[no-untyped-call]
        self.wait(SETTLE_SECONDS)

    @override
    def stop(self) -> None:
        if self._reader is not None:
            self._reader.stop()
            self._reader = None

    def _offset(self) -> dict[str, Any]:
        return self._at

    def _proceed(self) -> bool:
        reader = self._reader
        if reader is None:
            return False
        start = self._at or _copied(reader.initialOffset())
        end = _copied(reader.latestOffset(start, reader.getDefaultReadLimit()))
        if end == start:
            time.sleep(0.05)
        else:
            for split in reader.partitions(start, end):
                for batch in self._copy.read(pickle.loads(cloudpickle.dumps(split))):  # type: ignore[no-untyped-call]
                    self._events += [self._event(row) for row in batch.drop_columns(UNSEEN).to_pylist()]
            reader.commit(end)
        self._at = end
        return True


def _copied(offset: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(offset)))


def run(scenario: Scenario, server: GoldenServer, spark: SparkSession) -> list[str]:
    """The differences from the recording. Raises SkippedError, and whatever the source raises."""
    with tempfile.TemporaryDirectory(prefix="tailrace-golden-") as work:
        return scenario.differences(replay(scenario, server, SparkStream(spark, server, scenario, Path(work))))


def replay(scenario: Scenario, server: GoldenServer, stream: Stream) -> list[Event]:
    """The events that the source makes of the workload. Raises SkippedError, and whatever the source raises."""
    server.check(scenario.folder, scenario.settings)
    server.prepare(scenario.folder)
    try:
        try:
            stream.start()
            for step in server.workload(scenario.folder):
                _direct(scenario, stream, step)
            stream.wait(scenario.settle_seconds)
        finally:
            stream.stop()
        return stream.events
    finally:
        server.clear()


def _direct(scenario: Scenario, stream: Stream, step: Directive) -> None:
    if step.name == "wait":
        stream.wait(scenario.settle_seconds)
    elif step.name == "sleep":
        time.sleep(float(step.argument))
    elif step.name == "stop":
        stream.wait(scenario.settle_seconds)
        stream.stop()
    elif step.name == "start":
        stream.start()
    else:
        raise ValueError(f"{scenario.folder}: unknown directive @{step.name}")
