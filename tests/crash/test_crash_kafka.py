"""Kill and stall at each step of a Kafka write: readers of committed records see each change once, in log order."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.kafka_topics import consumed
from tests.crash.conftest import created, removed
from tests.crash.rig import Rig
from tests.crash.traffic import Traffic

# Several starts of Spark, on a machine that may be busy.
pytestmark = pytest.mark.timeout(900)


def pipeline(rig: Rig, kafka: EmbeddedKafka, tables: str) -> Rig:
    """A pipeline of these tables into Kafka."""
    rig.sink = {"kafka": {"bootstrap.servers": kafka.bootstrap, "properties": {"linger.ms": 500}}}
    rig.properties = {
        "topic.prefix": rig.database,
        "table.include.list": tables,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
    }
    return rig


@pytest.fixture
def kafka_rig(server: EmbeddedPostgres, kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Rig]:
    """A pipeline into Kafka that was never started, of a table of one row."""
    rig = pipeline(created(server, tmp_path), kafka, "public.items")
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


SLOW = pytest.mark.crash
# In the order in which a task comes to them; to the first two it comes in the first batch of a run.
FIRST = ("kafka-init", "kafka-check")
PLACES = (*FIRST, "kafka-begin", "kafka-produce", "kafka-flush", "kafka-commit", "kafka-committed")


def comes_to(rig: Rig, place: str, arm: Callable[[], None]) -> None:
    """A change comes to a place that is armed meanwhile; the row's first version is written before."""
    rig.start()
    rig.await_all_read()
    if place in FIRST:
        rig.kill()
        write(rig, "UPDATE items SET v = 1")
        rig.start()
        arm()
    else:
        arm()
        write(rig, "UPDATE items SET v = 1")


def goes_on(rig: Rig, value: int) -> None:
    """The next version of the row comes through."""
    rig.await_all_read()
    write(rig, f"UPDATE items SET v = {value}")
    rig.await_all_read()


@pytest.mark.parametrize(
    "place", [place if place == "kafka-flush" else pytest.param(place, marks=SLOW) for place in PLACES]
)
def test_an_orphan_writes_nothing_behind_its_successor(kafka_rig: Rig, kafka: EmbeddedKafka, place: str) -> None:
    rig = kafka_rig
    comes_to(rig, place, lambda: rig.arm_stop(place))
    orphan = rig.orphaned()
    rig.start()
    goes_on(rig, 2)
    orphan.send_signal(signal.SIGCONT)
    orphan.wait(120)
    goes_on(rig, 3)
    assert values(kafka, f"{rig.database}.public.items") == [0, 1, 2, 3]


DEATHS = [
    pytest.param(place, driver, master, marks=() if (place, driver) == ("kafka-committed", True) else SLOW)
    for place in PLACES
    for driver, master in ((True, "local[2]"), (False, "local[2]"), (False, "local[2,4]"))
]


@pytest.mark.parametrize(("place", "driver", "master"), DEATHS)
def test_a_death_repeats_nothing(kafka_rig: Rig, kafka: EmbeddedKafka, place: str, driver: bool, master: str) -> None:
    """With four attempts a task is tried again by the same run, with one the next run repeats the batch."""
    rig = kafka_rig
    rig.masters = cycle([master])
    comes_to(rig, place, lambda: rig.arm(place, 1, driver=driver))
    rig.await_kill()
    starts = rig.starts
    goes_on(rig, 2)
    assert values(kafka, f"{rig.database}.public.items") == [0, 1, 2]
    assert rig.starts == starts + (master == "local[2]"), "a task is tried again where Spark may do so"


@SLOW
def test_a_driver_killed_while_it_takes_over_leaves_it_to_the_next(kafka_rig: Rig, kafka: EmbeddedKafka) -> None:
    rig = kafka_rig
    rig.start()
    rig.await_all_read()
    rig.kill()
    write(rig, "UPDATE items SET v = 1")
    rig.start()
    rig.arm("kafka-claim", 1, driver=True)
    rig.await_kill()
    goes_on(rig, 2)
    assert values(kafka, f"{rig.database}.public.items") == [0, 1, 2]


@SLOW
@pytest.mark.parametrize("seed", range(10))
def test_killed_under_traffic(server: EmbeddedPostgres, kafka: EmbeddedKafka, tmp_path: Path, seed: int) -> None:
    """A table without a key adds up only if each change comes once, and one with a key only in order."""
    draw, rig = random.Random(seed), pipeline(created(server, tmp_path), kafka, "public.bag,public.pair")
    try:
        rig.start()
        rig.await_all_read()
        with Traffic(rig.connect, seed):
            for _ in range(4):
                rig.arm(draw.choice(PLACES[2:]), draw.randint(1, 4), driver=draw.random() < 0.5)
                rig.await_kill()
                rig.await_batches(draw.randint(1, 2))
        rig.await_all_read()
        bag, pair = (list(consumed(kafka, f"{rig.database}.public.{table}")) for table in ("bag", "pair"))
        assert added_up(bag) == rows(rig, "SELECT kind, v FROM bag")
        assert latest(pair) == rows(rig, "SELECT a, b, v FROM pair")
    finally:
        removed(rig)


def rows(rig: Rig, query: str) -> Counter[tuple[Any, ...]]:
    with rig.connect() as connection:
        return Counter(connection.execute(query.encode()).fetchall())


def added_up(messages: Iterable[Message]) -> Counter[tuple[Any, ...]]:
    """The rows that are left of a table without a key."""
    found: Counter[tuple[Any, ...]] = Counter()
    for message in messages:
        event = json.loads(message.value() or b"")
        found.update([tuple(event["after"].values())] if event["after"] else [])
        found.subtract([tuple(event["before"].values())] if event["before"] else [])
    assert min(found.values()) >= 0, "a row was taken away that was not there"
    return +found


def latest(messages: Iterable[Message]) -> Counter[tuple[Any, ...]]:
    """The rows by the last record of each key."""
    found: dict[bytes, tuple[Any, ...] | None] = {}
    for message in messages:
        event = json.loads(message.value()) if message.value() else {"after": None}
        found[message.key() or b""] = tuple(event["after"].values()) if event["after"] else None
    return Counter(row for row in found.values() if row is not None)
