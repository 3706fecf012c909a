"""Properties of snapshots that need a server to show what they do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest

from tailrace.connectors.postgres.snapshot.rows import SnapshotSplit
from tailrace.errors import SourceError
from tests.behaviour.capture import capturing
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, execute
from tests.behaviour.test_properties import TABLE, ids
from tests.conftest import Database


@pytest.mark.parametrize(
    ("order", "expected"),
    [("disabled", ["a", "b", "c"]), ("ascending", ["b", "c", "a"]), ("descending", ["a", "c", "b"])],
)
def test_tables_by_row_count(database: Database, order: str, expected: list[str]) -> None:
    for name, count in (("a", 30), ("b", 10), ("c", 20)):
        database.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY)",
            f"INSERT INTO {name} SELECT generate_series(1, {count})",
            f"ANALYZE {name}",
        )
    with capturing(database, snapshot__tables__order__by__row__count=order) as capture:
        splits = capture.plan()
    assert [split.table.table for split in splits] == expected


def test_tables_without_statistics_are_counted(database: Database) -> None:
    for name, count in (("a", 3), ("b", 1), ("c", 2)):
        database.execute(f"CREATE TABLE {name} (id int)", f"INSERT INTO {name} SELECT generate_series(1, {count})")
    with capturing(database, snapshot__tables__order__by__row__count="ascending") as capture:
        splits = capture.plan()
    assert [split.table.table for split in splits] == ["b", "c", "a"]


def test_one_table_is_cut_into_more_ranges_than_the_others(database: Database) -> None:
    for name in ("a", "b"):
        database.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v text)",
            f"INSERT INTO {name} SELECT n, repeat('v', 500) FROM generate_series(1, 1000) n",
        )
    given = {"snapshot__max__threads": "8", "snapshot__max__threads__multiplier__public__b": "4"}
    with capturing(database, **given) as capture:
        splits = [split for _ in range(10) for split in capture.plan() if isinstance(split, SnapshotSplit)]
    read = Counter(split.table.table for split in splits)
    assert read["a"] in (8, 9)  # as many, or one for what is beyond the last border
    assert read["b"] in (32, 33)


def test_a_user_supplied_select(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 9) n", "CREATE TABLE u (id int)")
    chosen = {
        "snapshot__select__statement__overrides": "public.t",
        "snapshot__select__statement__overrides__public__t": "SELECT * FROM public.t WHERE id > 6 ORDER BY id DESC",
    }
    with capturing(database, **chosen) as capture:
        rows = capture.step()
    assert [(row["after"]["id"], row["snapshot"]) for row in rows] == [(9, "first"), (8, "true"), (7, "last")]


def test_shared_locks_keep_tables_from_being_altered_while_the_snapshot_is_read(database: Database) -> None:
    database.execute(*TABLE)
    with capturing(database, snapshot__locking__mode="shared") as capture, database.connect() as other:
        splits = capture.plan()
        other.execute("INSERT INTO t VALUES (2)")
        other.execute("SET lock_timeout = 200")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("ALTER TABLE t ADD COLUMN more int")
        assert len([row for split in splits for chunk in capture.reader.read(split) for row in chunk.batches]) == 1
        assert ids(capture) == [2]
        other.execute("RESET lock_timeout")
        other.execute("ALTER TABLE t ADD COLUMN more int")


def test_a_lock_that_cannot_be_had_in_time_is_named(database: Database) -> None:
    database.execute(*TABLE)
    given = {"snapshot__locking__mode": "shared", "snapshot__lock__timeout__ms": "200"}
    with database.connect() as other, other.transaction():
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with (
            capturing(database, publication__autocreate__mode="no_tables", **given) as capture,
            pytest.raises(SourceError, match=r"public\.t: the lock for the snapshot cannot be had within 200 ms"),
        ):
            capture.plan()


def test_a_snapshot_that_cannot_be_planned_is_tried_again_if_it_is_listed(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(*TABLE)
    given = {
        "snapshot__select__statement__overrides": "public.t",
        "snapshot__select__statement__overrides__public__t": "SELECT * FROM public.gone",
        "errors__max__retries": "1",
        "internal__custom__retriable__exception": ".*relation .*gone.* does not exist",
    }
    with capturing(database, **given) as capture, pytest.raises(SourceError, match="gone"):
        capture.plan()
    assert caplog.text.count("trying again") == 1


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_tables_may_change_while_an_incremental_snapshot_reads_them(database: Database, allowed: str) -> None:
    """Whatever incremental.snapshot.allow.schema.changes says: each chunk has the columns of its moment."""
    database.execute(SIGNALS, *ROWS)
    with capturing(database, **GIVEN, incremental__snapshot__allow__schema__changes=allowed) as capture:
        capture.step()
        capture.step()
        execute(database, "s1")
        found: list[dict[str, Any]] = []
        changes = ["ADD COLUMN more int DEFAULT 5", "ALTER COLUMN version TYPE text USING 'v'", "DROP COLUMN note"]
        while len([row for row in found if row["op"] == "r"]) < 10:
            rows = [row for row in capture.step() if row["table"] == "public.t"]
            found += rows
            if rows and changes:
                database.execute(f"ALTER TABLE t {changes.pop(0)}", "UPDATE t SET id = id WHERE id = 10")
    read = [row["after"] for row in found if row["op"] == "r"]
    assert sorted(row["id"] for row in read) == list(range(1, 11))
    assert [set(row) for row in read][::3] == [
        {"id", "version", "note"},
        {"id", "version", "note", "more"},
        {"id", "version", "note", "more"},
        {"id", "version", "more"},
    ]
    assert [row["version"] for row in read][::3] == [0, 0, "v", "v"]
