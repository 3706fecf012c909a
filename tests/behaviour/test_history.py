"""The history that a replica keeps of a PostgreSQL table is the one that the table keeps itself by triggers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tailrace.pipeline.targets import ReplicaTarget
from tailrace.sinks.replica.target import read_table
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour import versioned
from tests.behaviour.engines import catalog
from tests.behaviour.kept import Kept
from tests.conftest import Database

AS_OF = "SELECT id, v, document FROM history WHERE valid_from <= $1 AND (valid_to > $1 OR valid_to IS NULL) ORDER BY id"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server that stores when each transaction was committed."""
    with EmbeddedPostgres(18, settings={"track_commit_timestamp": "on"}) as server:
        yield server


def target(folder: Path, lake: str, mode: str) -> ReplicaTarget:
    if lake == "delta":
        return ReplicaTarget.model_validate({"path": str(folder / "lake"), "mode": mode})
    place = {"format": "iceberg", "namespace": "lake", "catalog": catalog(folder / "lake")}
    return ReplicaTarget.model_validate({**place, "mode": mode})


class View:
    """A table of history, asked by SQL. Documents are compared by their hashes."""

    def __init__(self, lake: ReplicaTarget) -> None:
        rows = read_table(lake.root, "public.items", lake.options)
        hashes = [hashlib.md5(text.encode()).hexdigest() for text in rows.column("document").to_pylist()]
        self.rows = rows.set_column(rows.column_names.index("document"), "document", pa.array(hashes, pa.string()))
        self._connection = duckdb.connect(config={"TimeZone": "UTC"})
        self._connection.register("history", self.rows)

    def as_of(self, at: datetime) -> list[versioned.Row]:
        return self._connection.execute(AS_OF, [at.astimezone(timezone.utc)]).fetchall()


def follow(server: EmbeddedPostgres, lake: ReplicaTarget, draw: Random, rounds: int) -> tuple[versioned.Kept, View]:
    """The database's history and the replica's, after transactions, restarts and micro-batches that are repeated."""
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
        for _ in range(rounds):
            versioned.transact(sessions, draw, draw.randint(1, 5))
            splits = kept.capture.plan()
            kept.write(splits)
            if draw.random() < 0.3:
                kept.write(splits)
            if draw.random() < 0.1:
                kept.restart()
        kept.follow()
        assert kept.why("items") is None
        return versioned.Kept(sessions[0]), View(lake)


@pytest.mark.parametrize(
    ("lake", "seed", "rounds"),
    [
        ("delta", 1, 8),
        ("iceberg", 2, 8),
        *(
            pytest.param(lake, seed, 60, marks=pytest.mark.long)
            for lake in ("delta", "iceberg")
            for seed in range(3, 6)
        ),
    ],
)
def test_the_rows_as_of_any_commit_are_those_that_the_database_had(
    server: EmbeddedPostgres, tmp_path: Path, lake: str, seed: int, rounds: int
) -> None:
    kept, view = follow(server, target(tmp_path, lake, "history"), Random(seed), rounds)
    begun = min(view.rows.filter(pa.compute.equal(view.rows.column("_op"), "r")).column("valid_from").to_pylist())
    assert len(kept.states) > 2 * rounds
    assert kept.differences(begun, view.as_of) == []
    transactions = {*view.rows.column("_transaction").to_pylist()} - {None}
    assert len(transactions) > rounds, "versions say of which transaction they are"
