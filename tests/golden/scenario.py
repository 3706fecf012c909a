"""Runs a golden scenario through the Spark source on a real PostgreSQL server and compares what comes out."""

from __future__ import annotations

import json
import re
import string
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tailrace.connectors.offset import STREAM
from tailrace.connectors.postgres.position import parse_lsn
from tailrace.pipeline.checkpoint import position
from tailrace.testing.postgres import PostgresServer
from tests.golden.compare import HEARTBEATS, Event, compare, load
from tests.golden.script import Directive, split

# The recordings name the database, and the slot lives in it.
DATABASE = "golden"
SLOT = "golden_slot"
SETTLE_SECONDS = 0.5
PATIENCE_SECONDS = 120


class SkippedError(Exception):
    """The server, or this runner, lacks what the scenario needs."""


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

    def properties(self, server: PostgresServer) -> dict[str, str]:
        """The connector's properties for that server; known faults of the reference are to be copied."""
        given = json.loads((self.folder / "connector.json").read_text(encoding="utf-8"))["config"]
        places = {
            "host": server.host,
            "port": server.port,
            "user": server.user,
            "password": server.password,
            "dbname": DATABASE,
            "slot": SLOT,
        }
        filled = {name: string.Template(str(value)).safe_substitute(places) for name, value in given.items()}
        return {"compat.faults": "true", **filled}

    def differences(self, events: list[Event]) -> list[str]:
        """A line for each place where the events are not the recorded ones."""
        return [str(found) for found in compare(load(self.folder / "expected.jsonl"), events, self.settings)]

    def check(self, server: PostgresServer) -> None:
        """Raises SkippedError for what the server lacks."""
        if not (self.folder / "workload.sql").exists():
            raise SkippedError("has no workload.sql, so it is not for PostgreSQL")
        with server.connect() as admin:
            if admin.info.server_version // 10000 < self.settings.get("server", 0):
                raise SkippedError(f"needs PostgreSQL {self.settings['server']}")
            for need in self.settings.get("requires", ()):
                if not _has(admin, need):
                    raise SkippedError(f"needs the server's {need}")


class Stream:
    """The connector under test: a streaming query that collects its events and keeps a checkpoint."""

    def __init__(self, spark: SparkSession, server: PostgresServer, scenario: Scenario, work: Path) -> None:
        self._spark, self._server, self._work = spark, server, work
        self._properties = json.dumps(scenario.properties(server))
        # Heartbeats never end, and what they cause.
        self._endless = [re.compile(topic) for topic in (HEARTBEATS, *scenario.settings.get("collapse_topics", ()))]
        self._batches: dict[int, list[Event]] = {}  # a batch that is repeated after a stop replaces its first try
        self._query: StreamingQuery | None = None

    @property
    def events(self) -> list[Event]:
        """All events so far, in order of arrival."""
        return [event for number in sorted(self._batches) for event in self._batches[number]]

    def start(self) -> None:
        """Start, going on from the checkpoint, and return once the stream has caught up."""
        frame = (
            self._spark.readStream.format("postgres-cdc")
            .option("tailrace.properties", self._properties)
            .option("shape", "kafka")
            .load()
        )
        writer = frame.writeStream.foreachBatch(self._collect).trigger(processingTime="100 milliseconds")
        self._query = writer.option("checkpointLocation", str(self._work / "checkpoint")).start()
        self.wait(SETTLE_SECONDS)

    def wait(self, settle_seconds: float) -> None:
        """Return once all of the server's log is read and no event has arrived for so long. Raises what failed."""
        if self._query is None:
            return
        with self._server.connect(DATABASE) as connection:
            written = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        target = parse_lsn(str(written[0])) if written else 0
        deadline = time.monotonic() + PATIENCE_SECONDS
        seen, since = -1, time.monotonic()
        while not (self._reached(target) and time.monotonic() - since >= settle_seconds):
            if self._query.awaitTermination(0.1):  # raises the query's error
                return
            count = sum(1 for event in self.events if not self._is_endless(event["topic"]))
            if count != seen:
                seen, since = count, time.monotonic()
            if time.monotonic() > deadline:
                raise TimeoutError(f"the stream did not reach {written} in {PATIENCE_SECONDS} s: {self._position()}")

    def stop(self) -> None:
        """Stop; the checkpoint stays."""
        if self._query is not None:
            self._query.stop()
            self._query = None

    def _is_endless(self, topic: str) -> bool:
        return any(pattern.search(topic) for pattern in self._endless)

    def _collect(self, frame: DataFrame, number: int) -> None:
        self._batches[number] = [_event(row) for row in frame.collect()]

    def _position(self) -> dict[str, Any]:
        committed = position(str(self._work / "checkpoint")).committed
        return {} if committed is None else committed.offset

    def _reached(self, lsn: int) -> bool:
        offset = self._position()
        is_reading = bool(offset.get("snapshots", {}).get("queue"))
        return offset.get("phase") == STREAM and parse_lsn(offset["position"]) >= lsn and not is_reading


def run(scenario: Scenario, server: PostgresServer, spark: SparkSession) -> list[str]:
    """The differences from the recording. Raises SkippedError, and whatever the source raises."""
    scenario.check(server)
    server.drop_database(DATABASE)
    server.create_database(DATABASE)
    sessions: dict[str, psycopg.Connection[Any]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="tailrace-golden-") as work:
            stream = Stream(spark, server, scenario, Path(work))
            sessions["main"] = server.connect(DATABASE)
            _setup(scenario, sessions["main"])
            try:
                stream.start()
                _workload(scenario, server, stream, sessions)
                stream.wait(scenario.settle_seconds)
            finally:
                stream.stop()
            return scenario.differences(stream.events)
    finally:
        for session in sessions.values():
            session.close()
        server.drop_database(DATABASE)


def _setup(scenario: Scenario, session: psycopg.Connection[Any]) -> None:
    """Run by the workload's main session, as temporary tables of its are to be seen there."""
    for step in split((scenario.folder / "setup.sql").read_text(encoding="utf-8")):
        if not isinstance(step, Directive):
            session.execute(step.text.encode())


def _workload(
    scenario: Scenario, server: PostgresServer, stream: Stream, sessions: dict[str, psycopg.Connection[Any]]
) -> None:
    current = "main"
    for step in split((scenario.folder / "workload.sql").read_text(encoding="utf-8")):
        if not isinstance(step, Directive):
            if current not in sessions:
                sessions[current] = server.connect(DATABASE)
            sessions[current].execute(step.text.encode())
        elif step.name == "session":
            current = step.argument
        else:
            _direct(scenario, stream, step)


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
        raise ValueError(f"{scenario.folder / 'workload.sql'}: unknown directive @{step.name}")


def _has(admin: psycopg.Connection[Any], need: str) -> bool:
    """Whether an extension can be installed, or the server was built with `xml`."""
    if need == "xml":
        try:
            admin.execute("SELECT '<a/>'::xml")
        except psycopg.errors.FeatureNotSupported:
            return False
        return True
    return admin.execute("SELECT 1 FROM pg_available_extensions WHERE name = %s", [need]).fetchone() is not None


def _event(row: Row) -> Event:
    return {
        "topic": row.topic,
        "partition": row.partition,
        "key": None if row.key is None else json.loads(row.key),
        "value": None if row.value is None else json.loads(row.value),
        "headers": {header.key: json.loads(header.value) for header in row.headers or ()},
    }
