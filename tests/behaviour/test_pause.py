"""Micro-batches that read the log alone wait for the end of a pause; snapshots, and what a signal asks for, do not."""

from __future__ import annotations

import time

from pyspark.sql.streaming.datasource import ReadMaxBytes
from pyspark.sql.types import StructType

from tailrace.spark.reader import ChangeReader
from tests.behaviour.capture import capturing
from tests.conftest import Database

LIMIT = ReadMaxBytes(1 << 30)


def test_the_log_waits_and_a_snapshot_does_not(database: Database) -> None:
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
        begun = time.monotonic()
        database.execute(
            "INSERT INTO orders VALUES (61)",
            """INSERT INTO signals VALUES ('1', 'execute-snapshot', '{"data-collections": ["public.orders"]}')""",
        )
        while not steps():
            time.sleep(0.05)
        assert time.monotonic() - begun > 1.5
        begun, chunks = time.monotonic(), 1
        while here["snapshots"]["queue"]:
            assert steps()
            chunks += 1
        assert chunks > 5
        assert time.monotonic() - begun < 2 * chunks
