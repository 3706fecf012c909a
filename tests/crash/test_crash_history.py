"""Kill -9 while a replica keeps the history of a table: its rows as of any commit are those that the source had."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour import versioned
from tests.behaviour.engines import catalog, database
from tests.crash.rig import Rig
from tests.crash.seeds import seeds
from tests.servers import target

pytestmark = pytest.mark.timeout(900)
PLACES = [
    ("after-plan", True),
    ("after-read", False),
    ("after-table", False),
    ("after-write", True),
    ("in-upkeep", False),
]


@contextmanager
def changing(rig: Rig, seed: int) -> Iterator[None]:
    """Random transactions of two sessions, as long as the block lasts."""
    ended = threading.Event()

    def change() -> None:
        draw = random.Random(seed)
        with ExitStack() as stack:
            sessions = [stack.enter_context(rig.connect()) for _ in range(2)]
            while not ended.wait(0.02):
                versioned.transact(sessions, draw, 1)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("lake", ["delta", "iceberg", "postgres"])
def test_the_history_of_a_pipeline_that_is_killed_everywhere(tmp_path: Path, lake: str, seed: int) -> None:
    root, options = str(tmp_path / "replica"), {}
    sink: dict[str, object] = {"path": "replica"}
    if lake == "iceberg":
        root, options = "iceberg://lake", catalog(tmp_path / "lake")
        sink = {"format": "iceberg", "namespace": "lake", "catalog": options}
    elif lake == "postgres":
        root, options = database(tmp_path)
        sink = {**target.settings(tmp_path)}
    draw, name = random.Random(seed), f"history_{uuid4().hex[:8]}"
    with EmbeddedPostgres(18, settings={"track_commit_timestamp": "on"}) as server, ExitStack() as stack:
        server.create_database(name)
        rig = Rig(server, name, tmp_path)
        stack.callback(rig.close)
        rig.sink = {"replica": {**sink, "mode": "history"}}
        rig.properties = {"table.include.list": r"public\.items"}
        with rig.connect() as connection:
            connection.execute(versioned.SCHEMA.encode())
        rig.start()
        rig.await_all_read()
        with changing(rig, seed):
            for place, driver in draw.sample(PLACES, len(PLACES)):
                rig.arm(place, draw.randint(1, 3), driver=driver)
                rig.await_kill()
                rig.await_batches(2)
        rig.await_all_read()
        with rig.connect() as connection:
            kept = versioned.Kept(connection)
    view = versioned.View(root, options)
    assert len(kept.states) > 50
    assert kept.differences(view.begun, view.as_of) == []
