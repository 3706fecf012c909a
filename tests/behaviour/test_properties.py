"""Properties that need a server to show what they do."""

from __future__ import annotations

import time

import pytest

from tailrace.errors import ConfigError, OffsetError
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.test_stream import confirmed
from tests.conftest import Database

TABLE = ("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")


def ids(capture: Capture) -> list[int]:
    """Ids of the next step's rows."""
    return [row["after"]["id"] for row in capture.step()]


def test_manual_flushing_confirms_nothing(database: Database) -> None:
    database.execute(*TABLE)
    with capturing(database, lsn__flush__mode="manual") as capture:
        capture.step()
        before = confirmed(database)
        for number in range(2, 5):
            database.execute(f"INSERT INTO t VALUES ({number})")
            assert ids(capture) == [number]
        assert confirmed(database) == before
    with capturing(database, flush__lsn__source="false") as capture:
        assert capture.config.text("lsn.flush.mode") == "manual"


@pytest.mark.parametrize("strategy", ["no_validation", "trust_offset", "trust_slot", "trust_greater_lsn"])
def test_a_slot_that_moved_on(database: Database, strategy: str, caplog: pytest.LogCaptureFixture) -> None:
    database.execute(*TABLE)
    with capturing(database, offset__mismatch__strategy=strategy) as capture:
        capture.step()
        database.execute("INSERT INTO t VALUES (2)")
        assert ids(capture) == [2]
        capture.forget_streams()
        database.execute("INSERT INTO t VALUES (3)")
        database.execute(f"SELECT pg_replication_slot_advance('slot_{database.name}', pg_current_wal_lsn())")
        database.execute("INSERT INTO t VALUES (4)")
        if strategy in ("trust_slot", "trust_greater_lsn"):
            assert ids(capture) == [4]
            assert "are lost to this pipeline" in caplog.text
        else:
            with pytest.raises(OffsetError, match="was moved"):
                ids(capture)


@pytest.mark.parametrize(("interval", "filled"), [("0", False), ("1000", True)])
def test_xmin_of_the_slot(database: Database, interval: str, filled: bool) -> None:
    database.execute(*TABLE)
    with capturing(database, xmin__fetch__interval__ms=interval) as capture:
        capture.step()
        database.execute("INSERT INTO t VALUES (2)")
        (row,) = capture.step()
    assert (row["source"]["xmin"] is not None) is filled


def test_the_guardrail(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute(*TABLE, "CREATE TABLE u (id int PRIMARY KEY)")
    with capturing(database, guardrail__collections__max="1") as capture:
        capture.step()
        assert "2 tables are captured" in caplog.text
    failing = {"guardrail__collections__max": "1", "guardrail__collections__limit__action": "fail"}
    with capturing(database, **failing) as capture, pytest.raises(ConfigError, match="2 tables are captured"):
        capture.step()
    with capturing(database, **failing, table__include__list=r"public\.t", slot__name="fits") as capture:
        assert ids(capture) == [1]
    database.execute("SELECT pg_drop_replication_slot('fits')")


def test_delays(database: Database) -> None:
    database.execute(*TABLE)
    with capturing(database, snapshot__delay__ms="300", streaming__delay__ms="400") as capture:
        begin = time.monotonic()
        capture.step()
        assert time.monotonic() - begin >= 0.3
        database.execute("INSERT INTO t VALUES (2)")
        begin = time.monotonic()
        assert ids(capture) == [2]
        assert time.monotonic() - begin >= 0.4


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
    assert [split.table.schema.id.table for split in splits] == expected


def test_a_select_of_ones_own(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 9) n", "CREATE TABLE u (id int)")
    chosen = {
        "snapshot__select__statement__overrides": "public.t",
        "snapshot__select__statement__overrides__public__t": "SELECT * FROM public.t WHERE id > 6 ORDER BY id DESC",
    }
    with capturing(database, **chosen) as capture:
        rows = capture.step()
    assert [(row["after"]["id"], row["snapshot"]) for row in rows] == [(9, "first"), (8, "true"), (7, "last")]
