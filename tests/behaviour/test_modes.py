"""snapshot.mode beyond the first start: again each time, again when the position is lost, by flags."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailrace.errors import OffsetError
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database


def again(capture: Capture) -> Capture:
    """The same pipeline after a restart: a new planner, at the position that was committed."""
    properties = {name: value for name, value in capture.config.given.items() if name != "topic.prefix"}
    capture.close()
    restarted = Capture(capture.database, properties)
    restarted.offset = capture.offset
    return restarted


def read(capture: Capture) -> list[tuple[str, int]]:
    """Operation and id of all that is there, until nothing more comes."""
    found: list[tuple[str, int]] = []
    while rows := capture.step():
        found += [(row["op"], (row["after"] or row["before"])["id"]) for row in rows]
    return found


@pytest.fixture
def table(database: Database) -> Iterator[Database]:
    """A table with one row."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    yield database
    with database.connect() as connection:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s AND NOT active",
            [database.name],
        )


def test_always_reads_the_tables_at_each_start(table: Database) -> None:
    with capturing(table, snapshot__mode="always") as capture:
        assert read(capture) == [("r", 1)]
        table.execute("INSERT INTO t VALUES (2)")
        assert read(capture) == [("c", 2)]
        table.execute("INSERT INTO t VALUES (3)")
        second = again(capture)
        assert read(second) == [("r", 1), ("r", 2), ("r", 3)]
        table.execute("DELETE FROM t WHERE id = 2")
        assert read(second) == [("d", 2)]
        second.close()


@pytest.mark.parametrize("mode", ["always", "when_needed", "initial"])
def test_a_restart_right_after_the_snapshot(table: Database, mode: str) -> None:
    """There is no position of the log yet; it is lost if the slot is gone."""
    with capturing(table, snapshot__mode=mode) as capture:
        assert len(capture.step()) == 1
        second = again(capture)
        assert read(second) == ([("r", 1)] if mode == "always" else [])
        second.offset = capture.offset
        second.close()
        table.execute(f"SELECT pg_drop_replication_slot('slot_{table.name}')")
        third = again(second)
        if mode == "initial":
            with pytest.raises(OffsetError, match="the slot does not exist"):
                third.step()
        else:
            assert read(third) == [("r", 1)]
        third.close()


@pytest.mark.parametrize("loss", ["dropped", "moved", "nothing"])
def test_when_needed_reads_them_if_the_position_is_lost(table: Database, loss: str) -> None:
    takeover = str(loss == "moved").lower()  # a slot that somebody moved may be somebody's
    with capturing(table, snapshot__mode="when_needed", slot__takeover=takeover) as capture:
        assert read(capture) == [("r", 1)]
        table.execute("INSERT INTO t VALUES (2)")
        assert read(capture) == [("c", 2)]
        capture.forget_streams()
        table.execute("INSERT INTO t VALUES (3)")
        slot = f"slot_{table.name}"
        if loss == "dropped":
            table.execute(f"SELECT pg_drop_replication_slot('{slot}')")
        elif loss == "moved":
            table.execute(f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())")
        second = again(capture)
        expected = [("c", 3)] if loss == "nothing" else [("r", 1), ("r", 2), ("r", 3)]
        assert read(second) == expected
        table.execute("INSERT INTO t VALUES (4)")
        assert read(second) == [("c", 4)]
        second.close()


def test_initial_stops_if_the_position_is_lost(table: Database) -> None:
    with capturing(table) as capture:
        read(capture)
        table.execute("INSERT INTO t VALUES (2)")
        assert read(capture) == [("c", 2)]
        capture.forget_streams()
        table.execute("INSERT INTO t VALUES (3)")
        table.execute(f"SELECT pg_replication_slot_advance('slot_{table.name}', pg_current_wal_lsn())")
        second = again(capture)
        with pytest.raises(OffsetError, match="the slot was moved"):
            read(second)
        second.close()


@pytest.mark.parametrize(
    ("data", "stream", "first", "later"),
    [(True, True, [("r", 1)], [("c", 2)]), (False, True, [], [("c", 2)]), (True, False, [("r", 1)], [])],
)
def test_configuration_based(
    table: Database, data: bool, stream: bool, first: list[tuple[str, int]], later: list[tuple[str, int]]
) -> None:
    flags = {
        "snapshot__mode__configuration__based__snapshot__data": str(data).lower(),
        "snapshot__mode__configuration__based__start__stream": str(stream).lower(),
    }
    with capturing(table, snapshot__mode="configuration_based", **flags) as capture:
        assert read(capture) == first
        table.execute("INSERT INTO t VALUES (2)")
        assert read(capture) == later


def test_configuration_based_reads_the_tables_only_if_the_position_is_lost(table: Database) -> None:
    flags = {
        "snapshot__mode__configuration__based__snapshot__on__data__error": "true",
        "snapshot__mode__configuration__based__start__stream": "true",
    }
    with capturing(table, snapshot__mode="configuration_based", **flags) as capture:
        assert read(capture) == []
        table.execute("INSERT INTO t VALUES (2)")
        assert read(capture) == [("c", 2)]
        capture.forget_streams()
        table.execute("INSERT INTO t VALUES (3)", f"SELECT pg_drop_replication_slot('slot_{table.name}')")
        second = again(capture)
        assert read(second) == [("r", 1), ("r", 2), ("r", 3)]
        second.close()
