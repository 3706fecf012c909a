"""Kill -9 under traffic, after which the checkpoint lacks its newest files: the replica loses and doubles nothing."""

from __future__ import annotations

import random
import time

import pytest

from tests.crash.rig import Rig
from tests.crash.seeds import seeds
from tests.crash.traffic import TABLES, Traffic

pytestmark = pytest.mark.timeout(900)

SEEDS = seeds()


def settle(rig: Rig) -> None:
    """Wait for the end of the log, and compare."""
    rig.await_all_read()
    rig.check(*TABLES)


@pytest.mark.parametrize("seed", SEEDS)
def test_files_lost_at_any_moment(rig: Rig, seed: int) -> None:
    draw = random.Random(seed)
    with Traffic(rig.connect, seed):
        for _ in range(3):
            rig.await_batches(draw.randint(1, 2))
            time.sleep(draw.random())
            rig.kill()
            rig.lose_newest()
        rig.await_batches(2)
    settle(rig)


@pytest.mark.parametrize("seed", SEEDS)
def test_files_lost_of_a_batch_that_is_written_in_part(rig: Rig, seed: int) -> None:
    with Traffic(rig.connect, seed):
        for _ in range(2):
            rig.arm("after-table", random.Random(seed).randint(1, 5), driver=True)
            rig.await_kill()
            rig.lose_newest()
            rig.await_batches(1)
        rig.await_batches(2)
    settle(rig)


@pytest.mark.parametrize("seed", SEEDS)
def test_files_lost_in_the_first_snapshot(new_rig: Rig, seed: int) -> None:
    draw = random.Random(seed)
    new_rig.properties = {"snapshot.max.threads": "1", "snapshot.max.threads.multiplier": "3"}
    new_rig.start()
    with Traffic(new_rig.connect, seed):
        for _ in range(draw.randint(1, 3)):
            new_rig.await_batches(draw.randint(1, 4))
            time.sleep(draw.random())
            new_rig.kill()
            new_rig.lose_newest()
        new_rig.await_batches(2)
    settle(new_rig)


@pytest.mark.parametrize("driver", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_in_maintenance(new_rig: Rig, driver: bool, seed: int) -> None:
    draw = random.Random(seed)
    new_rig.sink["replica"]["retention"] = "1m"
    new_rig.start()
    with Traffic(new_rig.connect, seed):
        for _ in range(2):
            new_rig.await_batches(1)
            new_rig.arm("in-upkeep", draw.randint(1, 8), driver=driver)
            new_rig.await_kill()
        new_rig.await_batches(2)
    settle(new_rig)
