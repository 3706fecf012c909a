"""Kill -9 during the initial snapshot.

One of a single micro-batch begins anew, and nothing of the first attempt stays in the replica; one of several goes on.
"""

from __future__ import annotations

import random
import time

import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.crash.rig import Rig
from tests.crash.seeds import seeds
from tests.crash.traffic import TABLES, Traffic

# Several starts of Spark, on a machine that may be busy.
pytestmark = pytest.mark.timeout(900)

SEEDS = seeds()
# Each table of the snapshot is a split and a merge of its own; a worker passes some of them.
PLACES = [
    ("after-plan", True, 1),
    ("after-read", False, 3),
    ("after-table", False, 3),
    ("after-write", True, 1),
]


MOMENTS = seeds(most=50)


@pytest.mark.parametrize("seed", MOMENTS)
def test_snapshot_of_several_batches_killed_at_any_moment(new_rig: Rig, seed: int) -> None:
    rig, draw = new_rig, random.Random(seed)
    rig.properties = {"snapshot.max.threads": "2", "snapshot.max.threads.multiplier": "3"}
    with Traffic(rig.connect, seed):
        rig.start()
        for _ in range(2):
            rig.await_batches(draw.randint(1, 4))
            time.sleep(draw.random() / 2)
            rig.kill()
        rig.await_batches(8)
    rig.await_all_read()
    rig.check(*TABLES)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("place", "driver", "passages"), PLACES)
def test_snapshot_killed_at(new_rig: Rig, place: str, driver: bool, passages: int, seed: int) -> None:
    rig = new_rig
    with Traffic(rig.connect, seed):
        rig.start()
        rig.arm(place, random.Random(seed).randint(1, passages), driver=driver)
        rig.await_kill()
        rig.await_batches(3)
    rig.await_all_read()
    rig.check(*TABLES)


def test_table_emptied_between_two_attempts(new_rig: Rig) -> None:
    """The second snapshot finds no row in it; the replica holds those of the first."""
    rig = new_rig
    rig.start()
    rig.arm("after-write", 1, driver=True)
    rig.await_kill()
    with rig.connect() as connection:
        connection.execute("DELETE FROM keyed")
        connection.execute("DELETE FROM bag")
    rig.await_batches(1)
    rig.await_all_read()
    rig.check(*TABLES)


def test_server_killed_between_snapshot_and_log(new_rig: Rig, server: EmbeddedPostgres) -> None:
    """The log must go on where the second snapshot was taken, not where the slot was made for the first."""
    rig = new_rig
    rig.start()
    rig.arm("after-plan", 1, driver=True)
    rig.await_kill()
    with rig.connect() as connection:
        connection.execute("INSERT INTO bag SELECT 'between', n FROM generate_series(1, 100) n")
    rig.start()
    rig.arm("after-commit", 1, driver=True)
    rig.await_kill()
    server.kill()
    server.start()
    rig.await_batches(1)
    rig.await_all_read()
    rig.check(*TABLES)
