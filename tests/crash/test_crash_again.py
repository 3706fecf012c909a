"""Kill -9 while an incomplete table is read again under traffic: in the end it equals its source, and is complete."""

from __future__ import annotations

import random

import pytest
from deltalake import write_deltalake

from tailrace.pipeline.replica_states import stored_states
from tailrace.sinks.replica.target import read_table
from tests.crash.rig import Rig
from tests.crash.seeds import seeds

pytestmark = pytest.mark.timeout(900)

PLACES = [
    ("after-plan", 2, True),
    ("after-plan", 4, True),
    ("after-read", 2, False),
    ("after-table", 2, False),
    ("after-table", 3, True),
    ("after-table", 5, True),
    ("after-write", 2, True),
    ("after-write", 4, True),
    ("after-commit", 3, True),
    ("after-swap", 1, False),
    ("after-swap", 1, True),
]


def begun(rig: Rig) -> None:
    """A replica of a table with 200 rows, to which somebody has added rows and from which a row was taken."""
    rig.properties = {"signal.poll.interval.ms": "100", "incremental.snapshot.chunk.size": "10"}
    rig.sink = {"replica": {"path": "replica", "read_again": {"at_most_every": "0s"}}}
    with rig.connect() as connection:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, v text, big text)")
        connection.execute("ALTER TABLE items ALTER big SET STORAGE EXTERNAL")
        connection.execute("INSERT INTO items SELECT n, 'v' || n, repeat('x', 3000) FROM generate_series(1, 200) n")
    rig.start()
    rig.await_all_read()
    folder = str(rig.folder / "replica" / "public.items")
    rows = read_table(str(rig.folder / "replica"), "public.items")
    write_deltalake(folder, rows.slice(0, 3).set_column(0, "id", rows.column("id").slice(0, 3)), mode="append")
    with rig.connect() as connection:
        connection.execute("INSERT INTO items VALUES (0, 'shows it', 'y')")
    rig.await_(lambda: state(rig) != "complete", "nobody notices what was added")


def state(rig: Rig) -> str:
    return stored_states(str(rig.checkpoint))["public.items"].state


def change(rig: Rig, dice: random.Random) -> None:
    """Insert, delete, update, and move a row to another key, whose large value the log does not repeat."""
    with rig.connect() as connection:
        key = dice.randrange(1, 200)
        for statement in (
            f"UPDATE items SET v = 'u{dice.random()}' WHERE id = {key}",
            f"DELETE FROM items WHERE id = {dice.randrange(1, 200)}",
            f"UPDATE items SET id = {dice.randrange(1000, 10**6)} WHERE id = {dice.randrange(1, 200)}",
            f"INSERT INTO items VALUES ({dice.randrange(10**6, 10**9)}, 'new', 'y')",
        ):
            connection.execute(statement.encode())


@pytest.mark.parametrize(("place", "nth", "driver"), PLACES)
def test_killed_while_a_table_is_read_again(new_rig: Rig, place: str, nth: int, driver: bool) -> None:
    finish(new_rig, place, nth, driver, seed=nth)


@pytest.mark.parametrize("seed", seeds())
def test_killed_anywhere_while_a_table_is_read_again(new_rig: Rig, seed: int) -> None:
    dice = random.Random(seed)
    place, _, driver = dice.choice(PLACES)
    finish(new_rig, place, 1 if place == "after-swap" else dice.randrange(1, 8), driver, seed)


def finish(rig: Rig, place: str, nth: int, driver: bool, seed: int) -> None:
    dice = random.Random(seed)
    begun(rig)
    rig.arm(place, nth, driver=driver)
    for _ in range(10):
        change(rig, dice)
    rig.await_kill()
    for _ in range(5):
        change(rig, dice)

    rig.await_(lambda: state(rig) == "complete", "the table is not complete again")
    rig.await_all_read()
    rig.check("items")
    assert not (rig.folder / "replica" / "_reading" / "public.items").exists()
