"""A position that the server no longer has: how far the gap reaches, at a start and in mid-run, and what mends it."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.errors import OffsetError, SourceError
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.capture import Capture, capturing, reader
from tests.behaviour.test_modes import read
from tests.conftest import Database

AT = r"[0-9A-F]+/[0-9A-F]+"
REACH = rf"changes from {AT} \(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC\) up to {AT}, [\d.]+ [kM]?B of log, are lost"
Loss = Callable[[Database], None]
ALL = [("r", 1), ("r", 2), ("r", 3), ("r", 4)]


@pytest.fixture
def small() -> Iterator[EmbeddedPostgres]:
    """A server that keeps little log for slots and can be copied."""
    with EmbeddedPostgres(settings={"max_slot_wal_keep_size": "1MB"}) as server:
        yield server


def table(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")


def slot(database: Database) -> str:
    return f"slot_{database.name}"


def dropped(database: Database) -> None:
    # The server may not have seen yet that its reader has left.
    database.execute(
        "SELECT pg_terminate_backend(active_pid, 10000), pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
        f"WHERE slot_name = '{slot(database)}'"
    )


def made_anew(database: Database) -> None:
    dropped(database)
    database.execute(f"SELECT pg_create_logical_replication_slot('{slot(database)}', 'pgoutput')")


def advanced(database: Database) -> None:
    database.execute(f"SELECT pg_replication_slot_advance('{slot(database)}', pg_current_wal_lsn())")


def invalidated(database: Database) -> None:
    for _ in range(4):
        database.execute("SELECT pg_logical_emit_message(false, 't', 'x'), pg_switch_wal()")
    database.execute("CHECKPOINT")


def slot_state(database: Database) -> tuple[object, ...]:
    """The slot's state and confirmed position."""
    with database.connect() as connection:
        query = "SELECT wal_status, confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
        row = connection.execute(query, [slot(database)]).fetchone()
    assert row is not None
    return row


def confirmed(database: Database) -> object:
    return slot_state(database)[1]


LOSSES = [
    (dropped, "the slot does not exist"),
    (made_anew, "the slot was moved"),
    (advanced, "the slot was moved"),
]


def at_three(capture: Capture) -> None:
    """Read up to row 2; row 3 is there."""
    table(capture.database)
    assert read(capture) == [("r", 1)]
    capture.database.execute("INSERT INTO t VALUES (2)")
    assert read(capture) == [("c", 2)]
    capture.forget_streams()
    capture.database.execute("INSERT INTO t VALUES (3)")


def check_reach(error: OffsetError, what: str) -> None:
    assert re.search(f"{what}.*; {REACH}", error.what), error.what
    assert "snapshot.mode=when_needed" in str(error.remedy)
    assert "new checkpoint" in str(error.remedy)


@pytest.mark.parametrize(("loss", "what"), LOSSES)
def restart(capture: Capture) -> None:
    """As if the driver had been killed."""
    capture.close()
    capture.reader = reader(capture.config)


@pytest.mark.parametrize(("loss", "what"), LOSSES)
@pytest.mark.parametrize("is_start", [True, False])
def test_it_stops_with_an_error_that_names_the_gap(database: Database, loss: Loss, what: str, is_start: bool) -> None:
    with capturing(database) as capture:
        at_three(capture)
        loss(database)
        if is_start:
            restart(capture)
        with pytest.raises(OffsetError) as caught:
            read(capture)
        check_reach(caught.value, what)


@pytest.mark.parametrize(("loss", "what"), LOSSES)
def test_what_is_planned_already_stops_as_well(database: Database, loss: Loss, what: str) -> None:
    with capturing(database) as capture:
        at_three(capture)
        (split,) = capture.plan()
        loss(database)
        with pytest.raises(OffsetError) as caught:
            list(capture.reader.read(split))
        check_reach(caught.value, what)


@pytest.mark.parametrize("loss", [dropped, made_anew, advanced])
@pytest.mark.parametrize("moment", ["in mid-run", "planned before a restart"])
def test_when_needed_reads_the_tables_again(database: Database, loss: Loss, moment: str) -> None:
    takeover = "false" if loss is dropped else "true"  # a slot that somebody moved may be somebody's
    with capturing(database, snapshot__mode="when_needed", slot__takeover=takeover) as capture:
        at_three(capture)
        start = capture.offset
        if moment == "in mid-run":
            loss(database)
            database.execute("INSERT INTO t VALUES (4)")
            assert read(capture) == ALL
        else:
            capture.plan()
            loss(database)
            database.execute("INSERT INTO t VALUES (4)")
            restart(capture)
            assert capture.reader.plan(start, capture.offset) == [], "what is lost gives no rows"
            restart(capture)  # whoever comes next knows
            assert read(capture) == ALL
        database.execute("INSERT INTO t VALUES (5)")
        assert read(capture) == [("c", 5)]


@pytest.mark.parametrize("loss", [made_anew, advanced])
@pytest.mark.parametrize("moment", ["in mid-run", "planned before a restart", "at a restart"])
@pytest.mark.parametrize("mode", ["when_needed", "always"])
def test_a_slot_that_somebody_moved_is_left_alone(database: Database, loss: Loss, moment: str, mode: str) -> None:
    """It may be another pipeline's by now, which would lose its changes."""
    with capturing(database, snapshot__mode=mode) as capture:
        at_three(capture)
        start = capture.offset
        if moment == "planned before a restart":
            capture.plan()
        loss(database)
        before = confirmed(database)
        if moment != "in mid-run":
            restart(capture)

        def go_on() -> None:
            if moment != "planned before a restart":
                read(capture)
            for split in capture.reader.plan(start, capture.offset):
                list(capture.reader.read(split))

        with pytest.raises(OffsetError, match="the slot was moved") as caught:
            go_on()
        assert "slot.takeover=true" in str(caught.value.remedy)
        assert confirmed(database) == before


@pytest.mark.parametrize("mode", ["initial", "when_needed", "always"])
def test_an_invalidated_slot(small: EmbeddedPostgres, mode: str) -> None:
    database = Database(small, "postgres")
    with capturing(database, snapshot__mode=mode) as capture:
        at_three(capture)
        invalidated(database)
        database.execute("INSERT INTO t VALUES (4)")
        if mode == "initial":
            with pytest.raises(OffsetError) as caught:
                read(capture)
            check_reach(caught.value, r"the server has invalidated the slot \(wal_removed\)")
            assert "max_slot_wal_keep_size" in str(caught.value.remedy)
            restart(capture)
            capture.offset = capture.reader.begin()
            with pytest.raises(
                SourceError, match=r"did not create it: .*; the server has invalidated it \(wal_removed\)"
            ):
                read(capture)
            assert "lost" in str(slot_state(database))
            dropped(database)
            assert read(capture) == ALL, "as the remedy says"
        else:
            restart(capture)
            assert read(capture) == ALL


def test_a_slot_invalidated_while_it_is_read(small: EmbeddedPostgres) -> None:
    database = Database(small, "postgres")
    with capturing(database) as capture:
        at_three(capture)
        (split,) = capture.plan()
        chunks = capture.reader.read(split)
        assert len([row for chunk in chunks for batch in chunk.batches for row in batch.rows.to_pylist()]) == 1
        invalidated(database)  # which ends the connection that waits for the next stretch
        database.execute("INSERT INTO t VALUES (4)")
        with pytest.raises(OffsetError, match="the server has invalidated the slot"):
            read(capture)


@pytest.mark.parametrize("mode", ["initial", "when_needed"])
@pytest.mark.parametrize("loss", [dropped, made_anew, advanced])
def test_a_slot_lost_right_after_a_run_that_ended_with_the_snapshot(database: Database, loss: Loss, mode: str) -> None:
    """Its position is written down, though nothing came after it."""
    table(database)
    takeover = "false" if loss is dropped else "true"
    with capturing(database, snapshot__mode=mode, slot__takeover=takeover) as capture:
        connector, horizon = capture.reader, capture.reader.horizon(capture.offset)
        found = 0
        while (end := connector.head(capture.offset, None, horizon)) != capture.offset:
            splits = connector.plan(capture.offset, end)
            found += sum(len(batch) for split in splits for chunk in connector.read(split) for batch in chunk.batches)
            capture.offset = end
        assert found == 1
        assert capture.offset["position"] is not None
        database.execute("INSERT INTO t VALUES (2), (3), (4)")
        loss(database)
        restart(capture)
        if mode == "initial":
            with pytest.raises(OffsetError, match="are lost to this pipeline"):
                read(capture)
        else:
            assert read(capture) == ALL


@pytest.mark.parametrize("takeover", ["false", "true"])
def test_a_slot_moved_amid_a_snapshot_of_several_batches(
    database: Database, caplog: pytest.LogCaptureFixture, takeover: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 600)")
    several = {"snapshot__max__threads": "1", "snapshot__max__threads__multiplier": "6"}
    with capturing(database, slot__takeover=takeover, **several) as capture:
        capture.step()
        assert capture.step()
        assert capture.step()
        assert capture.offset["phase"] == "snapshot"
        capture.close()
        database.execute("DELETE FROM t WHERE id = 1")
        advanced(database)
        restart(capture)
        if takeover == "false":
            with pytest.raises(OffsetError, match="the slot was moved"):
                capture.step()
            return
        found = []
        while capture.offset["phase"] == "snapshot":
            found += capture.step()
        assert "the snapshot starts again from the beginning: the slot was moved" in caplog.text
        assert sorted(row["after"]["id"] for row in found) == list(range(2, 601))
        database.execute("DELETE FROM t WHERE id = 2")
        assert read(capture) == [("d", 2)]


def copied(server: EmbeddedPostgres) -> Path:
    """The server's files as they are now."""
    folder = server.data_dir.with_name("backup")
    server.stop()
    shutil.copytree(server.data_dir, folder)
    folder.chmod(0o700)
    for path in [folder, *folder.rglob("*")]:
        original = server.data_dir / path.relative_to(folder)
        shutil.chown(path, original.stat().st_uid, original.stat().st_gid)
    server.start()
    return folder


@pytest.mark.parametrize(
    ("grown", "mode"),
    [
        pytest.param(False, "initial", id="behind, initial"),
        pytest.param(True, "when_needed", id="grown beyond, when_needed"),
        pytest.param(False, "when_needed", id="behind, when_needed", marks=pytest.mark.long),
        pytest.param(True, "initial", id="grown beyond, initial", marks=pytest.mark.long),
    ],
)
def test_a_restored_server(small: EmbeddedPostgres, grown: bool, mode: str) -> None:
    """An older copy of the server, with its slot; and one that was restored to a point in time and has gone on."""
    database = Database(small, "postgres")
    with capturing(database, snapshot__mode=mode) as capture:
        at_three(capture)
        backup = copied(small)
        assert read(capture) == [("c", 3)]
        database.execute("INSERT INTO t VALUES (4), (5)")
        assert read(capture) == [("c", 4), ("c", 5)]
        capture.close()
    if grown:
        (backup / "recovery.signal").touch()
        settings = {"restore_command": "false", "recovery_target_action": "promote"}
    with EmbeddedPostgres(data_dir=backup, settings=settings if grown else {}) as restored:
        there = Database(restored, "postgres")
        if grown:
            with there.connect() as connection:
                while connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
                    time.sleep(0.05)
            there.execute("SELECT pg_logical_emit_message(false, 't', repeat('x', 100000))", "INSERT INTO t VALUES (4)")
        given = {name: value for name, value in capture.config.given.items() if not name.startswith("database.")}
        second = Capture(there, given)
        second.offset = capture.offset
        if mode == "when_needed":
            assert read(second) == ALL[: 4 if grown else 3]
        else:
            reach = rf"they part at {AT}; the checkpoint is at {AT} \(.*\), so the last [\d.]+ k?B that were read never"
            with pytest.raises(OffsetError, match=reach) as caught:
                read(second)
            assert "failed over" in str(caught.value.remedy)
        second.close()
