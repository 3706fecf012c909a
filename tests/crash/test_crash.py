"""Kill -9 of the driver, of a Python worker, of the walsender and of the server, under traffic: nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.crash.rig import Rig
from tests.crash.seeds import seeds
from tests.crash.traffic import TABLES, Traffic

# Several starts of Spark, on a machine that may be busy.
pytestmark = pytest.mark.timeout(900)

SEEDS = seeds()
# The place, and whether the driver dies there or only the Python worker that comes to it.
PLACES = [
    ("after-plan", True),
    ("after-read", False),
    ("after-table", False),
    ("after-write", True),
    ("after-commit", True),
]


HOW = ["fast", "immediate", "kill"]


def settle(rig: Rig) -> None:
    """Wait for the end of the log, and compare."""
    rig.await_all_read()
    rig.check(*TABLES)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("place", "driver"), PLACES)
def test_killed_at(rig: Rig, place: str, driver: bool, seed: int) -> None:
    with Traffic(rig.connect, seed):
        rig.arm(place, random.Random(seed).randint(1, 5), driver=driver)
        rig.await_kill()
        rig.await_batches(2)
    settle(rig)


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_any_moment(rig: Rig, seed: int) -> None:
    draw = random.Random(seed)
    with Traffic(rig.connect, seed):
        rig.await_batches(draw.randint(1, 3))
        time.sleep(draw.random())
        rig.kill()
        rig.await_batches(2)
    settle(rig)


@pytest.mark.parametrize("seed", SEEDS)
def test_reader_process_killed(rig: Rig, seed: int) -> None:
    draw, starts = random.Random(seed), rig.starts
    with Traffic(rig.connect, seed):
        for _ in range(3):
            rig.await_batches(draw.randint(1, 2))
            time.sleep(draw.random() / 2)
            os.kill(rig.reader_process(), signal.SIGKILL)
        rig.await_batches(2)
    settle(rig)
    assert rig.starts == starts, "a reader process is started anew without a restart"


@pytest.mark.parametrize("seed", SEEDS)
def test_walsender_terminated(rig: Rig, seed: int) -> None:
    draw, starts = random.Random(seed), rig.starts
    with Traffic(rig.connect, seed):
        for _ in range(3):
            rig.await_batches(draw.randint(1, 2))
            pid = rig.walsender()
            with rig.connect() as connection:
                connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        rig.await_batches(2)
    settle(rig)
    assert rig.starts == starts, "a lost connection is made anew without a restart"


@pytest.mark.parametrize("seed", SEEDS)
def test_walsender_killed(rig: Rig, seed: int) -> None:
    """All of the server's connections go with it: PostgreSQL takes it for a crash and recovers."""
    starts = rig.starts
    with Traffic(rig.connect, seed):
        rig.await_batches(random.Random(seed).randint(1, 3))
        os.kill(rig.walsender(), signal.SIGKILL)
        rig.await_batches(2)
    settle(rig)
    assert rig.starts == starts, "a lost connection is made anew without a restart"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", HOW)
def test_server_restarted(rig: Rig, server: EmbeddedPostgres, how: str, seed: int) -> None:
    starts = rig.starts
    with Traffic(rig.connect, seed):
        rig.await_batches(random.Random(seed).randint(1, 3))
        server.kill() if how == "kill" else server.stop(how)  # type: ignore[arg-type]
        server.start()
        rig.await_batches(2)
    settle(rig)
    assert rig.starts == starts, "a lost connection is made anew without a restart"
