"""A pipeline restarts after passing failures, limits of the role, and a clock that was set back."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.server.connect import connect
from tailrace.errors import SourceError
from tailrace.pipeline.checkpoint import SparkAloneError, position
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.restarts import ClockWatch
from tailrace.pipeline.run_state import run_state
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.capture import capturing, rows
from tests.behaviour.streams import eventually, properties
from tests.behaviour.test_stopping import descendants
from tests.conftest import Database

KILLED = "a Python process of Spark ended during its work: it was killed, perhaps because memory ran out"


@dataclass
class Fragile:
    """A target whose task kills its worker as long as a file is there, and which keeps the keys of events by batch."""

    bomb: Path
    batches: dict[int, list[str]] = field(default_factory=dict)
    shape: str = "kafka"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        bomb = self.bomb

        def explode(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            if bomb.exists():
                bomb.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            yield from rows

        def keep(batch: DataFrame, number: int) -> None:
            rows = batch.select("key").mapInArrow(explode, "key string").collect()
            self.batches[number] = [row["key"] for row in rows]

        return frame.selectExpr("cast(key as string) as key").writeStream.foreachBatch(keep)

    @property
    def events(self) -> int:
        return sum(map(len, self.batches.values()))


def until(running: Run, target: Fragile, events: int, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while target.events < events:
        assert time.monotonic() < deadline, target.batches
        assert not running.await_(0.2)
    assert target.events == events


def said(running: Run, checkpoint: str) -> tuple[str | None, ...]:
    """Why the query is to be started again, as this process and another one are told it, without the particulars."""
    running.await_(0.05)
    owner = run_state(checkpoint).owner
    return tuple(
        each and re.sub(r"^.*(?=a Python)|(?<=ran out) .*(?= \(restart)", "", each)
        for each in (running.progress().error, None if owner is None else owner.error)
    )


def why(running: Run, checkpoint: str) -> tuple[str | None, ...]:
    """The same, once both are told it; what was told is over as soon as the query runs again."""
    told: tuple[str | None, ...] = (None, None)

    def is_told() -> bool:
        nonlocal told
        told = tuple(before or now for before, now in zip(told, said(running, checkpoint), strict=True))
        return all(told)

    eventually(is_told)
    return told


def planner(spark: SparkSession) -> int:
    """The process that plans, by its command line."""
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    found = [
        pid
        for pid in descendants(java)
        if b"python_streaming_source_runner" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return found[-1]


def test_a_run_restarts_after_a_killed_worker_a_killed_planner_and_a_clock_set_back(
    spark: SparkSession, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    content = {"source": {"config": properties(database)}, "sink": {"null": {}}, "checkpoint": "state"}
    target = Fragile(tmp_path / "bomb")
    running = Pipeline(from_content(content, base=tmp_path, where="test"), session=spark, target=target).start()
    try:
        target.bomb.touch()
        checkpoint = str(tmp_path / "state")
        assert why(running, checkpoint) == (f"{KILLED} (restart 1 of 10 in a row)",) * 2
        until(running, target, 2)
        eventually(lambda: said(running, checkpoint) == (None, None))
        assert "The query is started again in 1 s (1 of 10 in a row)" in caplog.text

        os.kill(planner(spark), signal.SIGKILL)
        database.execute("INSERT INTO t VALUES (3)")
        until(running, target, 3)
        assert caplog.text.count("The query is started again in") == 2

        jump = [0.0]
        running._clock = ClockWatch(wall=lambda: time.time() + jump[0])
        before = running._query.runId
        jump[0] = -3600.0
        with caplog.at_level(logging.WARNING):
            while running._query.runId == before:
                running.await_(0.1)
        assert "was set back by 3,600 s" in caplog.text
        database.execute("INSERT INTO t VALUES (4)")
        until(running, target, 4)
    finally:
        running.stop()


def test_a_run_restarts_if_only_spark_can_read_its_checkpoint(
    spark: SparkSession, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a store is one whose keys Spark alone has: here a scheme that Arrow does not know."""
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.odd.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    hadoop.set("fs.viewfs.overload.scheme.target.odd.impl", "org.apache.hadoop.fs.LocalFileSystem")
    hadoop.set("fs.viewfs.mounttable.there.link./state", tmp_path.as_uri())
    checkpoint = "odd://there/state/checkpoint"
    with pytest.raises(SparkAloneError, match=r"odd://there.*cannot open"):
        position(checkpoint)
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    content = {"source": {"config": properties(database)}, "sink": {"null": {}}, "checkpoint": checkpoint}
    target = Fragile(tmp_path / "bomb")
    target.bomb.touch()
    running = Pipeline(from_content(content, base=tmp_path, where="test"), session=spark, target=target).start()
    try:
        until(running, target, 2)
        assert "The query is started again in 1 s (1 of 10 in a row)" in caplog.text
        assert running.progress().snapshot is None
    finally:
        running.stop()


def test_senders_that_are_all_taken_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedPostgres(settings={"max_wal_senders": "1"}) as server:
        server.create_database("shop")
        database = Database(server, "shop")
        database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        config = resolve({**database.properties, "topic.prefix": "x"})
        other = connect(config, replication=True, application="other")
        release = threading.Timer(2, other.close)
        release.start()
        with capturing(database) as capture:
            assert len(capture.step()) == 1
        release.join()
        assert "number of requested standby connections exceeds" in caplog.text
        assert "remedy: raise max_connections (for replication: max_wal_senders; for one role: " in caplog.text

    with EmbeddedPostgres(settings={"max_wal_senders": "0", "wal_level": "logical"}) as server:
        server.create_database("shop")
        database = Database(server, "shop")
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        with (
            pytest.raises(SourceError, match="exceeds") as told,
            capturing(database, errors__max__retries="0") as capture,
        ):
            capture.step()
        # By its SQLSTATE: the server's words are in the server's language.
        assert isinstance(told.value.__cause__, psycopg.errors.TooManyConnections)


@pytest.mark.long
def test_a_limit_on_the_transactions_of_the_role_does_not_end_a_snapshot(database: Database) -> None:
    """The snapshot is exported, held and read under settings of its own, by both ways of reading a table."""
    role = f"limited_{database.name}"
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 1000) AS n",
        f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD 'pw'",
        f"ALTER ROLE {role} SET transaction_timeout = '300ms'",
        f"ALTER ROLE {role} SET idle_in_transaction_session_timeout = '300ms'",
    )
    try:
        with capturing(database, database__user=role, database__password="pw") as capture:
            splits = capture.plan()
            time.sleep(1)
            assert len(rows(chunk for split in splits for chunk in capture.reader.read(split))) == 1000
    finally:
        database.execute(f"REASSIGN OWNED BY {role} TO {database.server.user}", f"DROP ROLE {role}")
