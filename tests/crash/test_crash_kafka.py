"""Kill and stall at each step of a Kafka write: readers of committed records see each change once, in log order."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.kafka_topics import consumed
from tests.crash.conftest import created, removed
from tests.crash.rig import Rig

# Several starts of Spark, on a machine that may be busy.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def kafka_rig(server: EmbeddedPostgres, kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Rig]:
    """A pipeline into Kafka that was never started, with a table of one row."""
    rig = created(server, tmp_path)
    rig.sink = {"kafka": {"bootstrap.servers": kafka.bootstrap, "properties": {"linger.ms": 500}}}
    rig.properties = {
        "topic.prefix": rig.database,
        "table.include.list": "public.items",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
    }
    write(rig, "CREATE TABLE items (id int PRIMARY KEY, v int)", "INSERT INTO items VALUES (1, 0)")
    try:
        yield rig
    finally:
        removed(rig)


def write(rig: Rig, *statements: str) -> None:
    with rig.connect() as connection:
        for statement in statements:
            connection.execute(statement.encode())


def values(kafka: EmbeddedKafka, topic: str, isolation: str = "read_committed") -> list[int]:
    """The column `v` of the records in a topic of one table, in the order of the log of each partition."""
    return [json.loads(message.value() or b"")["after"]["v"] for message in consumed(kafka, topic, isolation)]


def resume(orphan: psutil.Process) -> None:
    """Let a stopped worker go on, until it has ended."""
    orphan.send_signal(signal.SIGCONT)
    orphan.wait(120)


def test_an_orphan_writes_nothing_behind_its_successor(kafka_rig: Rig, kafka: EmbeddedKafka) -> None:
    rig = kafka_rig
    rig.start()
    rig.await_all_read()
    rig.arm_stop("kafka-flush")
    write(rig, "UPDATE items SET v = 1")
    orphan = rig.orphaned()
    rig.start()
    rig.await_all_read()
    write(rig, "UPDATE items SET v = 2")
    rig.await_all_read()
    resume(orphan)
    assert values(kafka, f"{rig.database}.public.items") == [0, 1, 2]
