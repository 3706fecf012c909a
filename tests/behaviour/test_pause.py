"""Micro-batches that read the log alone wait for the end of a pause; snapshots, and what a signal asks for, do not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes
from pyspark.sql.types import StructType

from tailrace.spark import reader as reader_module
from tailrace.spark.reader import ChangeReader
from tests.behaviour.capture import capturing
from tests.conftest import Database

LIMIT = ReadMaxBytes(1 << 30)


def test_the_log_waits_and_a_snapshot_does_not(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(reader_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    database.execute(
        "CREATE TABLE signals (id text PRIMARY KEY, type text, data text)",
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "INSERT INTO orders SELECT generate_series(1, 50)",
    )
    signals = {"signal__data__collection": "public.signals", "incremental__snapshot__chunk__size": "10"}
    with capturing(database, **signals) as capture:
        reader = ChangeReader(capture.reader, StructType(), "[]", "run", pause_seconds=2)
        here = reader.initialOffset()

        def steps() -> bool:
            """Plan a micro-batch, which counts as committed; whether there was something to plan."""
            nonlocal here
            start, here = here, reader.latestOffset(here, LIMIT)
            reader.partitions(start, here)
            return here != start

        assert steps()
        assert here["phase"] == "snapshot"
        database.execute("INSERT INTO orders VALUES (60)")
        assert steps(), "the log is read at once after the snapshot"
        database.execute(
            "INSERT INTO orders VALUES (61)",
            """INSERT INTO signals VALUES ('1', 'execute-snapshot', '{"data-collections": ["public.orders"]}')""",
        )
        assert not steps()
        now[0] += 1.9
        assert not steps()
        now[0] += 0.2
        assert steps(), "the pause is over"
        chunks = 1
        while here["snapshots"]["queue"]:
            assert steps(), "a chunk does not wait"
            chunks += 1
        assert chunks > 5
