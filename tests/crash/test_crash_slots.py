"""Kill -9 around the creation of a slot, beside a second pipeline that wants the same slot and never gets it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from tests.crash.rig import Rig
from tests.crash.seeds import seeds
from tests.crash.traffic import TABLES, Traffic

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def rival(new_rig: Rig) -> Iterator[Rig]:
    """A second pipeline of the same database, with the slot of the first one."""
    folder = new_rig.folder / "rival"
    folder.mkdir()
    rival = Rig(new_rig.server, new_rig.database, folder)
    rival.properties = {"slot.max.retries": "0"}
    yield rival
    rival.close()


def confirmed(rig: Rig) -> str:
    with rig.connect() as connection:
        query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
        row = connection.execute(query, [rig.slot]).fetchone()
    assert row is not None
    return str(row[0])


def refused(rival: Rig, why: str) -> None:
    rival.start()
    code, said = rival.ended()
    assert code == 1, said
    assert why in " ".join(said.split()), said


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("mode", ["initial", "when_needed"])
def test_killed_between_intention_and_creation(new_rig: Rig, mode: str, times: int) -> None:
    """The slot is created by a later run, which knows that it may."""
    new_rig.properties = {"snapshot.mode": mode, "snapshot.delay.ms": "600000"}
    with Traffic(new_rig.connect, times):
        for _ in range(times):
            new_rig.start()
            new_rig.await_planned()
            new_rig.kill()
            with new_rig.connect() as connection:
                slots = connection.execute("SELECT FROM pg_replication_slots WHERE slot_name = %s", [new_rig.slot])
                assert slots.fetchall() == []
        new_rig.properties = {"snapshot.mode": mode}
        new_rig.start()
        new_rig.await_batches(3)
    new_rig.await_all_read()
    new_rig.check(*TABLES)


@pytest.mark.parametrize("seed", seeds(most=4))
def test_killed_after_creation(new_rig: Rig, rival: Rig, seed: int) -> None:
    """The slot is this pipeline's, though no batch is committed: the other one is refused, killed or alive."""
    draw = random.Random(seed)
    with Traffic(new_rig.connect, seed):
        for _ in range(3):
            new_rig.start()
            new_rig.await_slot()
            time.sleep(draw.random())
            new_rig.kill()
            before = confirmed(new_rig)
            refused(rival, "this pipeline's checkpoint did not create it")
            assert confirmed(new_rig) == before
        new_rig.start()
        new_rig.await_batches(1)
        rival.properties |= {"slot.takeover": "true"}
        refused(rival, "is used by a run: server process")
        new_rig.await_batches(1)
    new_rig.await_all_read()
    new_rig.check(*TABLES)
