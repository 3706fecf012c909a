"""A network that goes silent under traffic, at any moment and as real ones do: nothing is lost, and nothing hangs.

Each silence lasts until it is noticed, half a minute to one and a half; tests/behaviour/test_silence.py has short ones.
"""

from __future__ import annotations

import random
import time

import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.proxies import DROP, FORWARD, STALL, proxy
from tests.crash.rig import Rig
from tests.crash.seeds import seeds
from tests.crash.traffic import TABLES, Traffic

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize("seed", seeds(most=8))
def test_a_silent_network(new_rig: Rig, server: EmbeddedPostgres, seed: int) -> None:
    draw = random.Random(seed)
    with proxy(server.port) as between:
        new_rig.properties = {"database.port": str(between.port)}
        new_rig.start()
        with Traffic(new_rig.connect, seed):
            for _ in range(3):
                new_rig.await_batches(draw.randint(1, 3))
                time.sleep(draw.random())
                between.spoil(draw.choice([STALL, DROP]), for_all=draw.random() < 0.3)
                if between.mode != FORWARD:
                    time.sleep(draw.uniform(5, 60))
                    between.heal()
            new_rig.await_batches(2)
        new_rig.await_all_read()
        new_rig.check(*TABLES)
    assert new_rig.starts == 1, "a connection that went silent is made anew without a restart"
