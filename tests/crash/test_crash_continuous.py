"""Kill -9 of a pipeline that compares its replica all the time: nothing false is said, and what is wrong is seen."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from deltalake import DeltaTable

from tailrace.pipeline.verified import Verified, stored
from tests.crash.rig import Rig
from tests.crash.seeds import seeds

pytestmark = pytest.mark.timeout(900)

PLACES = [("after-plan", True), ("after-read", False), ("after-table", True), ("after-write", True)]
# More than two parts.
ROWS = 50_000


def verified(rig: Rig) -> Verified:
    return stored(str(rig.checkpoint)).get("public.items", Verified())


@contextmanager
def changing(rig: Rig, dice: random.Random, looks: list[Verified]) -> Iterator[None]:
    """Changes of all kinds, also of keys, as long as the block lasts, and what is verified meanwhile."""
    ended = threading.Event()

    def change() -> None:
        with rig.connect() as connection:
            while not ended.wait(0.02):
                old, new = dice.randrange(ROWS), dice.randrange(ROWS, 2 * ROWS)
                for statement in (
                    f"UPDATE items SET v = 'u{new}' WHERE id % 1000 = {old % 1000}",
                    f"DELETE FROM items WHERE id = {old}",
                    f"UPDATE items SET id = id + {ROWS} WHERE id = {old + 1}",
                    f"INSERT INTO items VALUES ({-new}, 'new') ON CONFLICT DO NOTHING",
                ):
                    connection.execute(statement.encode())
                looks.append(verified(rig))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("seed", seeds())
def test_what_is_verified_under_kills(new_rig: Rig, seed: int) -> None:
    rig, dice, looks = new_rig, random.Random(seed), list[Verified]()
    rig.more = {"reconcile": {"continuous": True, "rate": 1_000_000}}
    # The last change is one of another program: the table would be read again for it before it is compared.
    rig.sink["replica"]["on_incomplete"] = "tell"
    with rig.connect() as connection:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, v text)")
        connection.execute(f"INSERT INTO items SELECT n, 'v' || n FROM generate_series(1, {ROWS}) n".encode())
    rig.start()
    rig.await_all_read()
    rig.await_(lambda: verified(rig).rows > 0, "nothing is compared")
    with changing(rig, dice, looks):
        for place, driver in dice.sample(PLACES, len(PLACES)):
            rig.arm(place, dice.randint(1, 3), driver=driver)
            rig.await_kill()
            rig.await_batches(2)
    rig.await_all_read()
    quiet = time.time()
    rig.await_(lambda: (verified(rig).up_to or 0) > quiet, "it is not verified again")
    rig.check("items")
    assert {look.differs for look in [*looks, verified(rig)]} == {""}, "a row on its way counts as wrong"
    times = [look.up_to or 0 for look in looks]
    assert times == sorted(times)
    DeltaTable(str(rig.folder / "replica" / "public.items")).delete("id % 100 = 7")
    rig.kill()
    rig.await_(lambda: bool(verified(rig).differs), "a true difference is not noticed")
