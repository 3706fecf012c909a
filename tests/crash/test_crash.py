"""Kill -9 of the driver, of a Python worker, of the walsender and of the server, under traffic: nothing is lost.

The default suite runs one seed of each place, `make crash` runs all.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.crash.rig import Rig
from tests.crash.traffic import SCHEMA, TABLES, Traffic

SEEDS = [pytest.param(seed, marks=pytest.mark.crash if seed else ()) for seed in range(20)]
# The place, and whether the driver dies there or only the Python worker that comes to it.
PLACES = [
    ("after-plan", True),
    ("after-read", False),
    ("after-table", False),
    ("after-write", True),
    ("after-commit", True),
]
# A replica of many small files grows slow, so a pipeline serves so many cases.
CASES_A_RIG = 20


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of these tests alone, as they kill it."""
    with EmbeddedPostgres(18) as server:
        yield server


class Rigs:
    """The pipeline that cases share; one that a case failed with is replaced."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.current: Rig | None = None
        self.cases = 0

    def take(self) -> Rig:
        """The present pipeline, running, or a fresh one."""
        if self.current is None or self.cases >= CASES_A_RIG:
            self.close()
            name = f"crash_{uuid4().hex[:8]}"
            (self.folder / name).mkdir()
            self.current, self.cases = fresh(self.server, name, self.folder / name), 0
            self.current.start()
            self.current.await_all_read()
        self.cases += 1
        return self.current

    def close(self) -> None:
        """End the present pipeline and drop its database."""
        if self.current is not None:
            self.current.close()
            self.server.drop_database(self.current.database)
            self.current = None


def fresh(server: EmbeddedPostgres, name: str, folder: Path) -> Rig:
    server.create_database(name)
    rig = Rig(server, name, folder)
    with rig.connect() as connection:
        connection.execute(SCHEMA.encode())
    return rig


@pytest.fixture(scope="module")
def rigs(server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rigs]:
    """Pipelines that run, one after another."""
    with closing(Rigs(server, tmp_path_factory.mktemp("crash"))) as rigs:
        yield rigs


@pytest.fixture
def rig(rigs: Rigs, request: pytest.FixtureRequest) -> Iterator[Rig]:
    """A running pipeline that equals its source; thrown away if the case fails."""
    failed = request.session.testsfailed
    yield rigs.take()
    if request.session.testsfailed > failed:
        rigs.close()


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
@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_server_restarted(rig: Rig, server: EmbeddedPostgres, how: str, seed: int) -> None:
    starts = rig.starts
    with Traffic(rig.connect, seed):
        rig.await_batches(random.Random(seed).randint(1, 3))
        server.kill() if how == "kill" else server.stop(how)  # type: ignore[arg-type]
        server.start()
        rig.await_batches(2)
    settle(rig)
    assert rig.starts == starts, "a lost connection is made anew without a restart"
