"""Kill -9 while the catalogue tells of what the log does not have: no table that differs is ever called complete."""

from __future__ import annotations

import random

import pytest

from tailrace.pipeline.replica_states import stored_states
from tests.crash.rig import Rig
from tests.crash.seeds import seeds

pytestmark = pytest.mark.timeout(900)

TABLES = """
CREATE TABLE items (id int PRIMARY KEY, v text, n int);
INSERT INTO items SELECT g, 'v' || g, g FROM generate_series(1, 50) g;
CREATE TABLE part (id int, d int, v text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d);
CREATE TABLE part_0 PARTITION OF part FOR VALUES FROM (0) TO (10);
INSERT INTO part SELECT g, g % 10, 'p' FROM generate_series(1, 30) g;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE moods (id int PRIMARY KEY, m mood);
INSERT INTO moods VALUES (1, 'sad'), (2, 'ok');
"""
CHANGES = """
ALTER TABLE items RENAME v TO w;
INSERT INTO items VALUES ({n}0001, 'new', 1);
ALTER TABLE items ADD extra int DEFAULT {n};
ALTER TABLE items ADD dice float DEFAULT random();
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
CREATE TABLE loose_{n} (LIKE part INCLUDING ALL);
INSERT INTO loose_{n} SELECT g, {n}5, 'l' FROM generate_series(1, 20) g;
ALTER TABLE part ATTACH PARTITION loose_{n} FOR VALUES FROM ({n}0) TO ({n}9);
UPDATE items SET w = w || '!' WHERE id < 5;
TRUNCATE part_0;
INSERT INTO part VALUES (99, 5, 'again');
ALTER TABLE items ALTER n TYPE bigint USING n * 10;
ALTER TABLE items RENAME w TO v;
ALTER TABLE items DROP dice, DROP extra;
ALTER TYPE mood RENAME VALUE 'blue' TO 'sad';
"""
PLACES = [
    ("after-table", 1, False),
    ("after-table", 2, True),
    ("after-table", 3, True),
    ("after-write", 1, True),
    ("after-write", 2, True),
    ("after-plan", 1, True),
    ("after-read", 1, False),
]
NAMES = ("items", "part", "moods")


def finish(rig: Rig, place: str, nth: int, driver: bool, seed: int) -> None:
    dice = random.Random(seed)
    rig.properties = {
        "publish.via.partition.root": "true",
        "signal.poll.interval.ms": "100",
        "table.watch.interval.ms": str(dice.choice((100, 1000))),
    }
    rig.sink = {"replica": {"path": "replica", "read_again": {"at_most_every": "0s"}}}
    with rig.connect() as connection:
        connection.execute(TABLES.encode())
        rig.start()
        rig.await_all_read()
        rig.arm(place, nth, driver=driver)
        for n in (1, 2):
            for statement in filter(str.strip, CHANGES.format(n=n).split(";")):
                connection.execute(statement.encode())
            if n == 1:
                rig.await_kill()

    def states() -> list[str]:
        found = stored_states(str(rig.checkpoint))
        return [found[f"public.{name}"].state for name in NAMES]

    rig.await_all_read()
    # What is found out comes a few looks at the catalogue later.
    rig.await_batches(3)
    rig.await_(lambda: states() == ["complete"] * len(NAMES), "tables stay incomplete")
    rig.await_all_read()
    rig.check(*NAMES)


@pytest.mark.parametrize(("place", "nth", "driver"), PLACES)
def test_killed_while_structures_change(new_rig: Rig, place: str, nth: int, driver: bool) -> None:
    finish(new_rig, place, nth, driver, seed=nth)


@pytest.mark.parametrize("seed", seeds())
def test_killed_anywhere_while_structures_change(new_rig: Rig, seed: int) -> None:
    place, _, driver = random.Random(seed).choice(PLACES)
    finish(new_rig, place, random.Random(seed).randrange(1, 6), driver, seed)
