"""A slot belongs to the checkpoint that created it: another one is refused, and may have it by slot.takeover only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tailrace.connectors.postgres.admin.checks import check
from tailrace.connectors.postgres.admin.operations import drop, drop_at_stop
from tailrace.connectors.postgres.options import PUBLICATION_NAME
from tailrace.connectors.postgres.server import control
from tailrace.errors import OffsetError, SourceError, TailraceError
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.streams import eventually
from tests.behaviour.test_gaps import confirmed, dropped, restart, slot
from tests.behaviour.test_modes import read
from tests.conftest import Database

TAKEN = "the slot exists already, and this pipeline's checkpoint did not create it"


@pytest.fixture(autouse=True)
def _table(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy server takes its time to notice that a connection was closed.
    monkeypatch.setattr(control, "_GRACE_SECONDS", 200.0)
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")


@contextmanager
def refused_soon(match: str) -> Iterator[pytest.ExceptionInfo[SourceError]]:
    """Who lives is not waited for long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "_GRACE_SECONDS", 0.5)
        with pytest.raises(SourceError, match=match) as caught:
            yield caught


@contextmanager
def idle(database: Database) -> Iterator[Capture]:
    """A pipeline with row 2 read and row 3 still to be read, which is stopped for the moment."""
    with capturing(database) as capture:
        database.execute("TRUNCATE t", "INSERT INTO t VALUES (1)")
        assert read(capture) == [("r", 1)]
        database.execute("INSERT INTO t VALUES (2)")
        assert read(capture) == [("c", 2)]
        database.execute("INSERT INTO t VALUES (3)")
        capture.close()
        yield capture


def exists(database: Database) -> bool:
    with database.connect() as connection:
        query = "SELECT FROM pg_replication_slots WHERE slot_name = %s"
        return connection.execute(query, [slot(database)]).fetchone() is not None


def created_by_hand(database: Database) -> None:
    """As Debezium leaves them: a publication, and a slot that was read up to row 2. Row 3 is in the log."""
    with capturing(database, snapshot__mode="no_data") as capture:
        publication = capture.config[PUBLICATION_NAME]
    database.execute(
        f"CREATE PUBLICATION {publication} FOR TABLE t",
        f"SELECT pg_create_logical_replication_slot('{slot(database)}', 'pgoutput')",
        "INSERT INTO t VALUES (2)",
        f"SELECT count(*) FROM pg_logical_slot_get_binary_changes('{slot(database)}', NULL, NULL, "
        f"'proto_version', '1', 'publication_names', '{publication}')",
        "INSERT INTO t VALUES (3)",
    )


@pytest.mark.parametrize("mode", ["initial", "no_data", "always", "when_needed", "initial_only"])
def test_a_new_checkpoint_leaves_the_slot_of_another_one_alone(database: Database, mode: str) -> None:
    with idle(database) as first:
        before = confirmed(database)
        with capturing(database, snapshot__mode=mode) as second:
            for _ in range(2):
                with pytest.raises(SourceError) as caught:
                    second.plan()
                second.reader.close()
        error = caught.value
        assert error.where == f"slot {slot(database)}"
        assert f"{TAKEN}: nobody reads it now, the last one did until 20" in error.what
        assert f"its confirmed position is {before}, " in error.what
        assert "slot.takeover=true" in str(error.remedy)
        assert "slot.name" in str(error.remedy)
        assert confirmed(database) == before
        assert read(first) == [("c", 3)], "nothing is lost"


def test_the_error_names_the_reader_of_the_slot(database: Database) -> None:
    with capturing(database) as first:
        read(first)
        database.execute("INSERT INTO t VALUES (2)")
        assert read(first) == [("c", 2)]
        first.reader.close()  # the reader still holds the slot
        with capturing(database) as second, pytest.raises(SourceError) as caught:
            second.plan()
        assert f"application 'tailrace {first.offset['pipeline']}', reads it" in caught.value.what


@pytest.mark.parametrize("mode", ["initial", "no_data"])
def test_a_run_is_refused_while_another_one_pauses(database: Database, mode: str) -> None:
    """Its reader has let the slot go for want of changes, but its planner lives: not even slot.takeover helps."""
    with capturing(database) as first:
        read(first)
        first.forget_streams()
        before = confirmed(database)
        taking = {"slot__takeover": "true", "snapshot__mode": mode}
        said = "a run of another checkpoint uses the slot: server process "
        with capturing(database, **taking) as second, refused_soon(said) as caught:
            second.plan()
        assert f"application 'tailrace {first.offset['pipeline']} planner'" in caught.value.what
        assert confirmed(database) == before
        database.execute("INSERT INTO t VALUES (2)")
        assert read(first) == [("c", 2)]


def test_takeover_moves_the_slot_to_a_snapshot(database: Database) -> None:
    with idle(database) as first:
        with capturing(database, slot__takeover="true") as second:
            assert read(second) == [("r", 1), ("r", 2), ("r", 3)]
            database.execute("INSERT INTO t VALUES (4)")
            assert read(second) == [("c", 4)]
        with pytest.raises(OffsetError, match="the slot was moved"):
            read(first)


@pytest.mark.parametrize("has_takeover", [True, False], ids=["kept", "removed after the start"])
def test_no_data_continues_from_the_confirmed_position(database: Database, has_takeover: bool) -> None:
    """The way from Debezium."""
    created_by_hand(database)
    with capturing(database, snapshot__mode="no_data", slot__takeover="true") as capture:
        before = confirmed(database)
        assert capture.plan() == []
        assert confirmed(database) == before
        assert capture.offset["position"] == before
        after = capture
        if not has_takeover:
            capture.close()
            after = Capture(database, {"snapshot.mode": "no_data"})
            after.offset = capture.offset
        assert read(after) == [("c", 3)]
        database.execute("INSERT INTO t VALUES (4)")
        assert read(after) == [("c", 4)]
        after.close()


def test_a_slot_that_is_moved_before_it_is_continued(database: Database) -> None:
    created_by_hand(database)
    with capturing(database, snapshot__mode="no_data", slot__takeover="true") as capture:
        assert capture.plan() == []
        database.execute(f"SELECT pg_replication_slot_advance('{slot(database)}', pg_current_wal_lsn())")
        with pytest.raises(OffsetError, match="the slot was moved"):
            read(capture)


class Killed:
    """A pipeline whose driver dies in the middle of its first batch, and is started again."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.start = capture.offset
        self.end = capture.reader.head(self.start, None, None)

    def plan(self) -> list[Any]:
        return list(self.capture.reader.plan(self.start, self.end))

    def restart(self) -> None:
        restart(self.capture)
        self.start = self.capture.reader.begin()  # Spark asks for it again

    def read(self) -> list[tuple[str, int]]:
        """The rows of the first batch, planned again, and of all later ones."""
        found = [
            row
            for split in self.plan()
            for chunk in self.capture.reader.read(split)
            for batch in chunk.batches
            for row in batch.rows.to_pylist()
        ]
        self.capture.offset = self.end
        return [(row["op"], row["after"]["id"]) for row in found] + read(self.capture)


def test_the_intention_is_stored_before_the_slot_is_created(database: Database) -> None:
    with capturing(database) as capture:
        killed = Killed(capture)
        assert killed.end["log"]["slot"]["name"] == slot(database)
        assert killed.end["log"]["slot"]["from"]
        assert not exists(database)


@pytest.mark.parametrize("mode", ["initial", "no_data"])
@pytest.mark.parametrize("moment", ["before the slot is created", "after it", "and again"])
def test_ownership_survives_a_kill(database: Database, mode: str, moment: str) -> None:
    with capturing(database, snapshot__mode=mode) as capture:
        killed = Killed(capture)
        if moment != "before the slot is created":
            killed.plan()
        killed.restart()
        if moment == "and again":
            killed.plan()
            killed.restart()
        database.execute("INSERT INTO t VALUES (2)")
        expected = [("c", 2)] if moment != "before the slot is created" else []
        assert killed.read() == ([("r", 1), ("r", 2)] if mode == "initial" else expected)


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_slot_that_another_pipeline_created_and_used_in_between(database: Database, is_restarted: bool) -> None:
    with capturing(database) as capture:
        killed = Killed(capture)
        capture.close()
        with idle(database) as other:
            before = confirmed(database)
            if is_restarted:
                killed.restart()
            with pytest.raises(SourceError, match=TAKEN):
                killed.plan()
            assert confirmed(database) == before
            capture.close()
            assert read(other) == [("c", 3)]


@pytest.mark.parametrize("mode", ["always", "when_needed"])
def test_a_later_snapshot_moves_its_own_slot_also_after_a_kill(database: Database, mode: str) -> None:
    with capturing(database, snapshot__mode=mode) as capture:
        assert read(capture) == [("r", 1)]
        database.execute("INSERT INTO t VALUES (2)")
        assert read(capture) == [("c", 2)]
        capture.forget_streams()
        restart(capture)
        if mode == "when_needed":
            dropped(database)
        killed = Killed(capture)
        assert killed.end["phase"] == "snapshot"
        killed.plan()  # it moves the slot, or creates it
        restart(capture)
        database.execute("INSERT INTO t VALUES (3)")
        assert killed.read() == [("r", 1), ("r", 2), ("r", 3)]


def drop_outcome(database: Database, begun: Any, **options: Any) -> str:
    with capturing(database) as capture:
        try:
            done = drop(capture.config, begun, **options)
        except TailraceError as error:
            return error.what
    return "owned and " + done[0]


def test_drop_removes_what_its_checkpoint_created_and_nothing_else(database: Database) -> None:
    with idle(database) as first:
        for begun in (None, (None, None)):
            assert "no checkpoint of this pipeline says that it created it" in drop_outcome(database, begun)
        assert "dropped" in drop_outcome(database, (first.offset, first.offset))
    with idle(database) as second:
        said = drop_outcome(database, (first.offset, first.offset))
        assert "no checkpoint of this pipeline says that it created it: nobody reads it now" in said
        restart(second)
        second.plan()
        for force in (False, True):
            said = drop_outcome(database, (second.offset, second.offset), force=force)
            assert "a pipeline uses it: server process" in said
            assert f"'tailrace {second.offset['pipeline']} planner'" in said
    assert "dropped" in drop_outcome(database, None, force=True)


def test_the_slot_of_another_checkpoint_stays_at_a_stop(database: Database) -> None:
    with idle(database) as first, capturing(database) as second:
        drop_at_stop(second.config, (None, None))
        assert exists(database)
        drop_at_stop(second.config, (first.offset, first.offset))
        assert not exists(database)


def test_check_reports_a_foreign_slot(database: Database) -> None:
    def slot_findings(begun: Any, **more: str) -> list[tuple[bool | None, str]]:
        with capturing(database, publication__autocreate__mode="filtered", **more) as capture:
            return [(one.ok, f"{one.what} {one.remedy}") for one in check(capture.config, begun) if one.name == "slot"]

    assert slot_findings((None, None)) == [(True, f"{slot(database)} will be created None")]
    with idle(database) as first:
        ((ok, what),) = slot_findings((None, None))
        assert ok is False
        assert TAKEN in what
        assert "slot.takeover=true" in what
        assert slot_findings((None, None), slot__takeover="true") == [(True, f"{slot(database)} exists None")]
        own = (first.offset, first.offset)
        assert slot_findings(own) == slot_findings(None) == [(True, f"{slot(database)} exists None")]
        restart(first)
        read(first)
        first.forget_streams()
        ((ok, what),) = slot_findings((None, None))
        assert ok is False
        assert "is used by a run: server process" in what
        own = (first.offset, first.offset)
        assert slot_findings(own) == [(True, f"{slot(database)} exists None")]


def test_two_runs_of_one_checkpoint(database: Database) -> None:
    """In a session of one's own nothing but the database knows of both."""
    with capturing(database) as first, ExitStack() as ended:
        read(first)
        second = ended.enter_context(capturing(database))
        second.offset = first.offset
        with refused_soon("another run of this checkpoint is going on: server process"):
            second.plan()
        database.execute("INSERT INTO t VALUES (2)")
        assert read(first) == [("c", 2)]
        first.close()
        second.offset = first.offset
        database.execute("INSERT INTO t VALUES (3)")
        assert read(second) == [("c", 3)]


def test_a_run_that_lost_its_connection_takes_the_lock_again_or_ends(database: Database) -> None:
    def end_planners() -> None:
        database.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE '% planner'"
        )

    with capturing(database) as first, capturing(database) as second:
        read(first)
        end_planners()
        database.execute("INSERT INTO t VALUES (2)")
        assert read(first) == [("c", 2)]
        second.offset = first.offset
        with refused_soon("another run of this checkpoint"):
            second.plan()
        first.forget_streams()
        end_planners()
        assert read(second) == []
        with refused_soon("another run of this checkpoint"):
            first.plan()


def test_a_lock_that_a_dead_planner_left_is_waited_for(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    script = (
        "import psycopg, sys; from tailrace.connectors.postgres.server.control import take; "
        "from tailrace.connectors.postgres.config import resolve; "
        f"config = resolve({ {**database.properties, 'topic.prefix': 't', 'slot.name': slot(database)}!r}); "
        f"c = psycopg.connect({database.dsn!r}, autocommit=True); take(c, config, 'tailrace gone planner'); "
        "c.execute('SELECT pg_sleep(600)')"
    )
    other = subprocess.Popen([sys.executable, "-c", script])
    sleeping = "FROM pg_stat_activity WHERE application_name = 'tailrace gone planner' AND wait_event = 'PgSleep'"
    with database.connect() as connection:
        eventually(lambda: connection.execute(f"SELECT pid {sleeping}".encode()).fetchone())
    other.kill()
    other.wait()

    def noticed() -> None:
        """The server goes on with the query, and notices only afterwards that its client is gone."""
        eventually(lambda: "is in use by another run: server process" in caplog.text)
        database.execute(f"SELECT pg_terminate_backend(pid) {sleeping}")

    with ThreadPoolExecutor() as pool, capturing(database) as capture:
        noticing = pool.submit(noticed)
        assert read(capture) == [("r", 1)]
        noticing.result()
