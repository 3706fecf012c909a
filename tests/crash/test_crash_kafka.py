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
from tests.crash.seeds import seeds
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


class Row:
    """A pipeline of a table with one row, whose versions are counted from 0; cases share it."""

    def __init__(self, rig: Rig, kafka: EmbeddedKafka) -> None:
        self.rig, self.kafka = pipeline(rig, kafka, "public.items"), kafka
        self.version = 0
        self.master: str | None = None
        write(rig, "CREATE TABLE items (id int PRIMARY KEY, v int)", "INSERT INTO items VALUES (1, 0)")

    def runs(self, master: str) -> None:
        """The pipeline runs with that master, and all is read."""
        if self.master != master:
            self.rig.masters, self.master = cycle([master]), master
            self.rig.start()
        self.rig.await_all_read()

    def change(self) -> None:
        """The row's next version."""
        self.version += 1
        write(self.rig, f"UPDATE items SET v = {self.version}")

    def resume(self) -> None:
        """What is there comes through, and so does the next version."""
        self.rig.await_all_read()
        self.change()
        self.rig.await_all_read()

    def check(self) -> None:
        """Readers of committed records see each version once, in order."""
        messages = consumed(self.kafka, f"{self.rig.database}.public.items")
        found = [json.loads(message.value() or b"")["after"]["v"] for message in messages]
        assert found == list(range(self.version + 1))

    def comes_to(self, place: str, arm: Callable[[], None]) -> None:
        """A change comes to a place that is armed meanwhile."""
        if place in FIRST:
            self.rig.kill()
            self.change()
            self.rig.start()
            arm()
        else:
            arm()
            self.change()


@pytest.fixture(scope="module")
def rows_of(
    server: EmbeddedPostgres, kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Row]]:
    """At most one pipeline, for the cases that come."""
    kept: list[Row] = []
    yield kept
    for row in kept:
        removed(row.rig)


@pytest.fixture
def row(
    rows_of: list[Row], server: EmbeddedPostgres, kafka: EmbeddedKafka, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Row]:
    """The pipeline; thrown away if the case fails."""
    failed = request.session.testsfailed
    if not rows_of:
        rows_of.append(Row(created(server, tmp_path), kafka))
    yield rows_of[0]
    if request.session.testsfailed > failed:
        removed(rows_of.pop().rig)


def write(rig: Rig, *statements: str) -> None:
    with rig.connect() as connection:
        for statement in statements:
            connection.execute(statement.encode())


# In the order in which a task comes to them; to the first three it comes in the first batch of a run.
FIRST = ("kafka-start", "kafka-init", "kafka-check")
PLACES = (*FIRST, "kafka-begin", "kafka-produce", "kafka-flush", "kafka-commit", "kafka-committed")


@pytest.mark.parametrize("place", PLACES)
def test_an_orphan_writes_nothing_behind_its_successor(row: Row, place: str) -> None:
    rig = row.rig
    row.runs("local[2]")
    row.comes_to(place, lambda: rig.arm_stop(place))
    orphan = rig.orphaned()
    rig.start()
    row.resume()
    starts = rig.starts
    orphan.send_signal(signal.SIGCONT)
    orphan.wait(120)
    row.resume()
    row.check()
    # From the middle of its producer's start a task cuts off the newest run before it finds out that it was given up.
    assert rig.starts == starts or place in ("kafka-init", "kafka-check")


DEATHS = [
    (place, driver, master)
    for driver, master in ((True, "local[2]"), (False, "local[2]"), (False, "local[2,4]"))
    for place in PLACES
]


@pytest.mark.parametrize(("place", "driver", "master"), DEATHS)
def test_a_death_repeats_nothing(row: Row, place: str, driver: bool, master: str) -> None:
    """Spark tries a task again if it may make four attempts; if it may not, the run starts the query again."""
    rig = row.rig
    row.runs(master)
    row.comes_to(place, lambda: rig.arm(place, 1, driver=driver))
    rig.await_kill()
    starts = rig.starts
    row.resume()
    row.check()
    assert rig.starts == starts + driver, "a run outlives its tasks"


def test_a_driver_killed_while_it_takes_over_leaves_it_to_the_next(row: Row) -> None:
    row.runs("local[2]")
    row.rig.kill()
    row.change()
    row.rig.start()
    row.rig.arm("kafka-claim", 1, driver=True)
    row.rig.await_kill()
    row.resume()
    row.check()


@pytest.mark.parametrize("seed", seeds(most=10))
def test_killed_under_traffic(server: EmbeddedPostgres, kafka: EmbeddedKafka, tmp_path: Path, seed: int) -> None:
    """A table without a key adds up only if each change comes once, and one with a key only in order."""
    draw, rig = random.Random(seed), pipeline(created(server, tmp_path), kafka, "public.bag,public.pair")
    try:
        rig.start()
        rig.await_all_read()
        with Traffic(rig.connect, seed):
            for _ in range(4):
                rig.arm(draw.choice(PLACES[3:]), draw.randint(1, 4), driver=draw.random() < 0.5)
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
    for value in filter(None, (message.value() for message in messages)):  # a delete has a tombstone of no key
        event = json.loads(value)
        found.update([tuple(event["after"].values())] if event["after"] else [])
        found.subtract([tuple(event["before"].values())] if event["before"] else [])
    assert min(found.values()) >= 0, "a row was taken away that was not there"
    return +found


def latest(messages: Iterable[Message]) -> Counter[tuple[Any, ...]]:
    """The rows by the last record of each key."""
    found: dict[bytes, tuple[Any, ...] | None] = {}
    for message in messages:
        event = json.loads(message.value() or '{"after": null}')
        found[message.key() or b""] = tuple(event["after"].values()) if event["after"] else None
    return Counter(row for row in found.values() if row is not None)
