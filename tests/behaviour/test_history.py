"""The history that a replica keeps of a PostgreSQL table is the one that the table keeps itself by triggers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tailrace.pipeline.targets import ReplicaTarget
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour import versioned
from tests.behaviour.engines import catalog
from tests.behaviour.kept import Kept
from tests.conftest import Database
from tests.servers import target as databases
from tests.unit.sinks.deaths import Killed, killed_at


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server that stores when each transaction was committed."""
    with EmbeddedPostgres(18, settings={"track_commit_timestamp": "on"}) as server:
        yield server


def target(folder: Path, lake: str, mode: str) -> ReplicaTarget:
    if lake == "delta":
        return ReplicaTarget.model_validate({"path": str(folder / "lake"), "mode": mode})
    if lake == "postgres":
        return ReplicaTarget.model_validate({**databases.settings(folder / "lake"), "mode": mode})
    place = {"format": "iceberg", "namespace": "lake", "catalog": catalog(folder / "lake")}
    return ReplicaTarget.model_validate({**place, "mode": mode})


def dies(kept: Kept, splits: list[Any]) -> bool:
    """Whether the process dies while it writes; it may have too little to do."""
    try:
        kept.write(splits)
    except Killed:
        return True
    return False


def follow(
    server: EmbeddedPostgres, lake: ReplicaTarget, draw: Random, rounds: int, deaths: float
) -> tuple[versioned.Kept, versioned.View]:
    """The database's history and the replica's, after transactions, restarts and micro-batches that are repeated.

    `deaths`: how often the process that writes a micro-batch dies at one of its steps.
    """
    name = f"history_{draw.getrandbits(32):x}"
    server.create_database(name)
    database = Database(server, name)
    with ExitStack() as stack:
        stack.callback(server.drop_database, name)
        sessions: Sequence[Any] = [stack.enter_context(database.connect()) for _ in range(2)]
        database.execute(versioned.SCHEMA)
        kept = Kept(database, Path(), lake, table__include__list="public.items")
        stack.callback(kept.stop)
        kept.follow()
        died = 0
        for _ in range(rounds):
            versioned.transact(sessions, draw, draw.randint(1, 5))
            splits = kept.capture.plan()
            if draw.random() < deaths:
                with killed_at(draw.randint(1, draw.choice([3, 9]))):  # Delta has fewer steps
                    died += dies(kept, splits)
            kept.write(splits)
            if draw.random() < 0.3:
                kept.write(splits)
            if draw.random() < 0.1:
                kept.restart()
        kept.follow()
        assert died >= rounds * deaths / 4
        assert kept.why("items") is None
        return versioned.Kept(sessions[0]), versioned.View(lake.root, lake.options)


@pytest.mark.parametrize(
    ("lake", "seed", "rounds", "deaths"),
    [
        ("delta", 1, 8, 0),
        pytest.param("iceberg", 2, 8, 0, marks=pytest.mark.long),
        *(pytest.param(each, 3, 60, 0, marks=pytest.mark.long) for each in ("delta", "iceberg", "postgres")),
        *(pytest.param(each, 4, 60, 0.4, marks=pytest.mark.long) for each in ("delta", "iceberg")),
    ],
)
def test_the_rows_as_of_any_commit_are_those_that_the_database_had(
    server: EmbeddedPostgres, tmp_path: Path, lake: str, seed: int, rounds: int, deaths: float
) -> None:
    kept, view = follow(server, target(tmp_path, lake, "history"), Random(seed), rounds, deaths)
    assert len(kept.states) > 2 * rounds
    assert kept.differences(view.begun, view.as_of) == []
    transactions = {*view.rows.column("_transaction").to_pylist()} - {None}
    assert len(transactions) > rounds, "versions say of which transaction they are"
