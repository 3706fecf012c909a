"""A blocking snapshot under traffic, while its connections are ended again and again: each row is read all the same."""

from __future__ import annotations

import random
import time

import pytest
from deltalake import DeltaTable

import tailrace
from tailrace.pipeline.checkpoint import position
from tests.crash.rig import Rig
from tests.crash.seeds import seeds
from tests.crash.traffic import TABLES, Traffic

pytestmark = pytest.mark.timeout(900)

SEEDS = seeds()
DAMAGED = ("keyed", "pair")
# The connection that holds the snapshot, or every one of the pipeline's.
VICTIMS = ("tailrace snapshot", "tailrace%")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_connections_of_a_blocking_snapshot_end_at_any_moment(rig: Rig, seed: int) -> None:
    """The replica has lost rows, which only the snapshot brings back."""
    draw = random.Random(seed)
    rig.kill()
    for table in DAMAGED:
        DeltaTable(str(rig.folder / "replica" / f"public.{table}")).delete()
    rig.start()
    rig.await_batches(1)
    with Traffic(rig.connect, seed):
        data = {"data-collections": [f"public.{table}" for table in DAMAGED], "type": "blocking"}
        tailrace.signal(rig.folder / "pipeline.yaml", "execute-snapshot", data)
        for _ in range(draw.randint(1, 3)):
            if end_holder(rig, draw.choice(VICTIMS), draw.choice([0.0, draw.random() / 5])):
                continue
            break
    rig._until(lambda: is_done(rig), "the snapshot is not read")
    rig.await_all_read()
    rig.check(*TABLES)


def end_holder(rig: Rig, victims: str, later: float) -> bool:
    """Wait for an exported snapshot, and end connections a moment later; False when the snapshot was read before."""
    holders = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tailrace snapshot' AND datname = %s"
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s AND datname = %s"
    deadline = time.monotonic() + 60
    with rig.connect() as connection:
        while not connection.execute(holders, [rig.database]).fetchall():
            if time.monotonic() > deadline:
                assert is_done(rig)
                return False
            time.sleep(0.002)
        time.sleep(later)
        connection.execute(end, [victims, rig.database])
    return True


def is_done(rig: Rig) -> bool:
    """Whether a signal was taken, and nothing is left that it asked for."""
    if list((rig.checkpoint / "signals").glob("*.json")):
        return False
    committed = position(str(rig.checkpoint)).committed
    assert committed is not None
    snapshots = committed.offset["snapshots"]
    assert "incomplete" not in snapshots, snapshots
    return not snapshots["queue"] and snapshots["undo"] is None
