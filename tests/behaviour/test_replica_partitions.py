"""Replicas of partitioned tables whose changes come under the root's name, and partitions that come and go."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.behaviour.kept import Case, Kept, faults, keeping
from tests.conftest import Database

TABLES = (
    "CREATE TABLE part (id int, d int, v text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d)",
    "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20)",
    "CREATE TABLE empty PARTITION OF part FOR VALUES FROM (20) TO (30)",
    "CREATE TABLE loose (LIKE part INCLUDING ALL)",
    "CREATE TABLE loose_empty (LIKE part INCLUDING ALL)",
    "INSERT INTO part VALUES (1, 1, 'a'), (2, 11, 'b')",
    "INSERT INTO loose VALUES (3, 31, 'c')",
)
MADE = "CREATE TABLE x (LIKE part)"
ATTACHED = "ALTER TABLE part ATTACH PARTITION x FOR VALUES FROM (50) TO (60)"
ROOT = {
    "publish__via__partition__root": "true",
    "table__include__list": r".*\.part",
    "publication__autocreate__mode": "filtered",
}


def done(kept: Kept, *statements: str) -> str | None:
    kept.database.execute(*statements)
    kept.follow()
    return kept.why("part")


CASES = [
    (["ALTER TABLE part ATTACH PARTITION loose FOR VALUES FROM (30) TO (40)"], "loose became a part of it"),
    ([MADE, "INSERT INTO x VALUES (9, 51)", ATTACHED, "INSERT INTO part VALUES (8, 52)"], "x became a part of it"),
    ([f"DO $$ BEGIN {MADE}; INSERT INTO x VALUES (9, 51); {ATTACHED}; END $$"], "x became a part of it"),
    (["ALTER TABLE part DETACH PARTITION part_1"], "part_1 was detached or dropped, with the rows that it had"),
    (["ALTER TABLE part DETACH PARTITION part_1", "DELETE FROM part_1"], "was detached or dropped"),
    (["ALTER TABLE part DETACH PARTITION part_1", "TRUNCATE part_1"], "was detached or dropped"),
    (["DROP TABLE part_1"], "part_1 was detached or dropped"),
    (["TRUNCATE part_1"], "part_1 was truncated"),
    (["TRUNCATE part_1", "INSERT INTO part VALUES (5, 5, 'e')", "ANALYZE part_1"], "part_1 was truncated"),
    (["TRUNCATE part", "INSERT INTO part VALUES (5, 5, 'e'), (6, 15, 'f')", "VACUUM part_1"], None),
    (["ALTER TABLE part ATTACH PARTITION loose_empty FOR VALUES FROM (30) TO (40)"], None),
    ([MADE, ATTACHED, "INSERT INTO part VALUES (5, 51, 'e')", "UPDATE part SET v = 'x'"], None),
    (["CREATE TABLE x PARTITION OF part FOR VALUES FROM (50) TO (60)", "INSERT INTO part VALUES (5, 51)"], None),
    ([f"DO $$ BEGIN {MADE}; {ATTACHED}; INSERT INTO part VALUES (5, 51); END $$"], None),
    (["VACUUM FULL part_1", "CLUSTER part_2 USING part_2_pkey"], None),
    (["ALTER TABLE part ADD n int DEFAULT 5", "INSERT INTO part VALUES (5, 5, 'e', 6)"], None),
    (["ALTER TABLE part ADD n int DEFAULT 5"], None),
    (["ALTER TABLE part RENAME v TO w"], None),
    (["ALTER TABLE part ADD n float DEFAULT random()"], "the table rewritten"),
    (["ALTER TABLE part ALTER v TYPE varchar(10)"], "the type of the column v"),
    (["ALTER TABLE part_1 SET UNLOGGED", "INSERT INTO part VALUES (5, 5)"], "part_1 is unlogged"),
    (
        ["ALTER TABLE part_1 SET UNLOGGED", "INSERT INTO part VALUES (5, 5)", "ALTER TABLE part_1 SET LOGGED"],
        "part_1 was truncated or rewritten",
    ),
    (["UPDATE part SET d = d + 10 WHERE id = 1", "DELETE FROM part WHERE id = 2"], None),
]


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
def test_partitions_that_come_and_go(database: Database, tmp_path: Path, is_stopped: bool) -> None:
    cases = [Case(statements, why, TABLES, "part") for statements, why in CASES]
    assert not faults(database, tmp_path, cases, is_stopped=is_stopped, **ROOT)


def test_partitions_that_never_had_rows_leave_without_a_word(database: Database, tmp_path: Path) -> None:
    with keeping(database, tmp_path, *TABLES, **ROOT) as kept:
        assert done(kept, "ALTER TABLE part DETACH PARTITION empty") is None
        assert kept.is_same("part")


def test_parts_of_parts(database: Database, tmp_path: Path) -> None:
    tables = (
        *TABLES,
        "CREATE TABLE sub PARTITION OF part FOR VALUES FROM (40) TO (50) PARTITION BY LIST (id)",
        "CREATE TABLE sub_1 PARTITION OF sub FOR VALUES IN (1, 2, 3)",
        "CREATE TABLE other (LIKE part) PARTITION BY LIST (id)",
        "CREATE TABLE other_1 PARTITION OF other DEFAULT",
        "INSERT INTO part VALUES (1, 41, 's')",
        "INSERT INTO other VALUES (7, 71, 'o')",
    )
    with keeping(database, tmp_path, *tables, **ROOT) as kept:
        assert kept.is_same("part")
        assert done(kept, "CREATE TABLE sub_2 PARTITION OF sub DEFAULT", "INSERT INTO part VALUES (9, 49, 't')") is None
        assert kept.is_same("part")
        why = done(kept, "ALTER TABLE part ATTACH PARTITION other FOR VALUES FROM (70) TO (80)")
        assert why == "public.other_1 became a part of it, with the rows that it had"


@pytest.mark.parametrize(("via_root", "followed"), [("true", ["part"]), ("false", ["empty", "part_1", "part_2"])])
def test_of_a_root_and_its_partitions_one_half_is_captured(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, via_root: str, followed: list[str]
) -> None:
    with (
        caplog.at_level(logging.INFO),
        keeping(database, tmp_path, *TABLES, publish__via__partition__root=via_root) as kept,
    ):
        database.execute("INSERT INTO part VALUES (5, 5, 'e')", "UPDATE part SET v = 'x' WHERE id = 2")
        kept.follow()
        names = [table.table for table in kept.tables()]
        assert sorted({"part", "part_1", "part_2", "empty"}.intersection(names)) == followed
        assert all(kept.is_same(table) for table in names)
        assert all(kept.why(table) is None for table in names)
        assert {path.name for path in (tmp_path / "lake").glob("public.*")} == {f"public.{table}" for table in names}
        left = {"part", "part_1", "part_2", "empty"}.difference(followed)
        (line,) = [each.message for each in caplog.records if "left out" in each.message]
        assert all(f"public.{table}" in line for table in left)


def test_a_detached_partition_is_a_table_that_is_read(database: Database, tmp_path: Path) -> None:
    with keeping(database, tmp_path, *TABLES, publish__via__partition__root="true") as kept:
        database.execute("ALTER TABLE part DETACH PARTITION part_1", "INSERT INTO part_1 VALUES (9, 9, 'i')")
        kept.follow()
        assert kept.why("part_1") == "it was a partition before, whose changes came under another name"
        assert kept.why("part") is not None
        assert kept.why("part_2") is None
