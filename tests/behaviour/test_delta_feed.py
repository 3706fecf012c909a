"""Partitioned Delta replicas and their change data feed, against a PostgreSQL table under random transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tailrace.pipeline.targets import ReplicaTarget
from tests.behaviour.kept import Kept
from tests.conftest import Database

PLACES = ["'a'", "'b'", "'c_d'", "NULL"]
REPEATED, RESTARTED = 0.3, 0.15


@contextmanager
def followed(database: Database, folder: Path, **settings: Any) -> Iterator[Kept]:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, region text, v int)",
        "INSERT INTO t SELECT n, (ARRAY['a', 'b', NULL])[n % 3 + 1], 0 FROM generate_series(1, 30) n",
    )
    lake = {"path": str(folder / "lake"), "retention": "7d", **settings}
    kept = Kept(database, Path(), ReplicaTarget.model_validate(lake), table__include__list="public.t")
    try:
        kept.follow()
        yield kept
    finally:
        kept.stop()


def change(database: Database, draw: Random, column: str) -> None:
    """A transaction: rows come, go, move to another partition, and change their keys."""
    statements = ["BEGIN"]
    for _ in range(draw.randint(1, 6)):
        key, place = draw.randint(1, 40), draw.choice(PLACES)
        put = f"ON CONFLICT (id) DO UPDATE SET {column} = excluded.{column}, v = t.v + 1"
        statements += draw.choice(
            [
                [f"INSERT INTO t (id, {column}, v) VALUES ({key}, {place}, 0) {put}"],
                [f"UPDATE t SET {column} = {place} WHERE id % 7 = {key % 7}"],
                [f"UPDATE t SET v = v + 1 WHERE id = {key}"],
                [f"DELETE FROM t WHERE id = {key}"],
                [f"DELETE FROM t WHERE id = {key}", f"UPDATE t SET id = {key} WHERE id = {key % 40 + 1}"],
            ]
        )
    if draw.random() < 0.05:
        statements += ["TRUNCATE t"]
    database.execute(";\n".join([*statements, "COMMIT"]))


def traffic(database: Database, kept: Kept, draw: Random, rounds: int, column: str = "region") -> None:
    for _ in range(rounds):
        change(database, draw, column)
        splits = kept.capture.plan()
        kept.write(splits)
        if draw.random() < REPEATED:
            kept.write(splits)
        if draw.random() < RESTARTED:
            kept.restart()
    kept.follow()
    assert kept.why("t") is None
    assert kept.is_same("t")


def partitions(folder: Path) -> list[str]:
    return list(DeltaTable(folder / "lake" / "public.t").metadata().partition_columns)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_the_change_feed_makes_the_rows_of_the_source(database: Database, tmp_path: Path, seed: int) -> None:
    feed = {"table_properties": {"delta.enableChangeDataFeed": True}, "partition_by": ["region"]}
    with followed(database, tmp_path, **feed) as kept:
        traffic(database, kept, Random(seed), 15 if seed == 1 else 100)
        changes = pa.table(DeltaTable(tmp_path / "lake" / "public.t").load_cdf(starting_version=0).read_all())
        rows: Counter[tuple[Any, ...]] = Counter()
        for each in sorted(changes.to_pylist(), key=lambda each: int(each["_commit_version"])):
            is_put = each["_change_type"] in ("insert", "update_postimage")
            rows[(each["id"], each["region"], each["v"])] += 1 if is_put else -1
        wanted = Counter((row["id"], row["region"], row["v"]) for row in kept.source("t"))
        assert {row: count for row, count in rows.items() if count} == wanted
        assert partitions(tmp_path) == ["region"]


@pytest.mark.long
@pytest.mark.parametrize("seed", [4, 5])
def test_a_partitioned_replica_follows_renames(database: Database, tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    with followed(database, tmp_path, partition_by={r"public\.t": ["region"]}) as kept:
        column = "region"
        for new in ("area", "region", "place"):
            traffic(database, kept, draw, 30, column)
            database.execute(f"ALTER TABLE t RENAME COLUMN {column} TO {new}")
            kept.follow()
            column = new
            assert partitions(tmp_path) == [column]
        traffic(database, kept, draw, 30, column)
        database.execute(f"ALTER TABLE t DROP COLUMN {column}", "INSERT INTO t VALUES (100, 1)")
        kept.follow()
        assert partitions(tmp_path) == []
        assert kept.is_same("t")


@pytest.mark.long
def test_a_partitioned_history(database: Database, tmp_path: Path) -> None:
    settings = {"partition_by": ["region"], "mode": "history", "table_properties": {"delta.enableChangeDataFeed": True}}
    with followed(database, tmp_path, **settings) as kept:
        for _ in range(40):
            change(database, Random(_), "region")
            kept.write(kept.capture.plan())
        kept.follow()
        now = [row for row in kept.rows("t") if row["valid_to"] is None]
        names = ("id", "region", "v")
        assert sorted(str([row[name] for name in names]) for row in now) == sorted(
            str([row[name] for name in names]) for row in kept.source("t")
        )
        assert partitions(tmp_path) == ["region"]
