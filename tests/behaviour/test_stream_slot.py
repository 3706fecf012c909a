"""The slot of a stream: who holds it, and the error if it was dropped, moved or belongs to another pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tailrace.connectors import retry
from tailrace.connectors.postgres.position import format_lsn
from tailrace.connectors.postgres.server import slot
from tailrace.connectors.postgres.server.connect import connect
from tailrace.errors import OffsetError, SourceError
from tests.behaviour import streams_here
from tests.behaviour.capture import Capture, capturing, rows
from tests.behaviour.entries import TABLE, capturing_entries, confirmed, fill, ids
from tests.conftest import Database


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_SECONDS", 0.02)


@pytest.fixture
def capture(database: Database) -> Iterator[Capture]:
    """A pipeline over the table `entries` whose (empty) snapshot has been read."""
    with capturing_entries(database) as capture:
        yield capture


def hold(database: Database, application: str) -> psycopg.Connection:
    """Another reader of the slot."""
    reader = psycopg.connect(database.dsn, replication="database", application_name=application, autocommit=True)
    options = f"(proto_version '1', publication_names 'publication_{database.name}')"
    reader.pgconn.exec_(f"START_REPLICATION SLOT slot_{database.name} LOGICAL 0/0 {options}".encode())
    return reader


def test_a_slot_moves_although_nothing_of_ours_is_written(database: Database, capture: Capture) -> None:
    database.execute("CREATE TABLE other (a int)")
    before = confirmed(database)
    for _ in range(3):
        database.execute("INSERT INTO other SELECT generate_series(1, 100)")
        capture.step()
    assert confirmed(database) > before


def test_a_stream_is_wanted_while_its_planner_is_connected(database: Database, capture: Capture) -> None:
    """By this a reader process that nobody asks keeps the slot, or ends."""
    fill(database, 1)
    assert len(capture.step()) == 1
    stream = streams_here.streams[f"tailrace {capture.offset['pipeline']}"]
    assert stream.is_wanted()
    capture.reader.close()
    deadline = time.monotonic() + 120
    while stream.is_wanted():  # until the server has noticed
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_stranger_on_the_slot_is_named(database: Database, capture: Capture) -> None:
    fill(database, 10)
    (split,) = capture.plan()
    stranger = hold(database, "backup of the shop")
    try:
        with pytest.raises(SourceError, match="backup of the shop") as caught:
            list(capture.reader.read(split))
        assert str(stranger.info.backend_pid) in str(caught.value)
        assert "slot.name" in (caught.value.remedy or "")
    finally:
        stranger.close()


def test_a_dead_reader_of_the_same_pipeline_is_terminated(database: Database, capture: Capture) -> None:
    fill(database, 10)
    (split,) = capture.plan()
    dead = hold(database, split.range.application)
    try:
        assert ids(rows(capture.reader.read(split))) == list(range(1, 11))
    finally:
        dead.close()


def test_a_dead_process_that_was_creating_the_slot_is_terminated(database: Database) -> None:
    """Its server process goes on waiting for older transactions, and holds the half-made slot meanwhile."""
    with capturing(database) as capture, database.connect() as writer, database.connect() as admin:
        writer.execute("BEGIN; SELECT pg_current_xact_id()")
        application = f"tailrace {capture.offset['pipeline']}"
        dead = connect(capture.config, replication=True, application=slot.snapshot_application(application))
        with closing(dead):
            create = f"CREATE_REPLICATION_SLOT slot_{database.name} LOGICAL pgoutput (SNAPSHOT 'export')"
            dead.pgconn.send_query(create.encode())
            while (made := slot.find(admin, f"slot_{database.name}")) is None or made.active_pid is None:
                time.sleep(0.01)
            assert slot.free(admin, capture.config, application) is None
        writer.execute("ROLLBACK")


def test_a_dropped_slot_is_a_sentence(database: Database, capture: Capture) -> None:
    fill(database, 10)
    (split,) = capture.plan()
    database.execute(f"SELECT pg_drop_replication_slot('slot_{database.name}')")
    with pytest.raises(OffsetError, match="slot does not exist") as caught:
        list(capture.reader.read(split))
    assert caught.value.remedy


def test_a_slot_moved_beyond_the_checkpoint_names_the_gap(database: Database, capture: Capture) -> None:
    fill(database, 10)
    capture.step()
    fill(database, 10, 11)
    (split,) = capture.plan()
    capture.forget_streams()
    database.execute(f"SELECT pg_replication_slot_advance('slot_{database.name}', pg_current_wal_lsn())")
    reach = rf"from {format_lsn(split.range.start)} \(.* UTC\) up to {format_lsn(confirmed(database))}, \d.*B of log"
    with pytest.raises(OffsetError, match=reach):
        list(capture.reader.read(split))


def test_a_slot_moved_right_after_the_snapshot_is_noticed(database: Database) -> None:
    database.execute(TABLE)
    fill(database, 3)
    with capturing(database) as capture:
        assert len(capture.step()) == 3
        fill(database, 2, 4)
        database.execute(f"SELECT pg_replication_slot_advance('slot_{database.name}', pg_current_wal_lsn())")
        fill(database, 1, 6)
        with pytest.raises(OffsetError, match="the slot was moved"):
            capture.step()


def test_a_checkpoint_of_another_source_or_time_is_refused(database: Database, capture: Capture) -> None:
    stranger = {**capture.offset, "source": "7/shop/other"}
    with pytest.raises(OffsetError, match="7/shop/other"):
        capture.reader.head(stranger, None, None)
    newer = {**capture.offset, "version": 99}
    with pytest.raises(OffsetError, match="version 99"):
        capture.reader.head(newer, None, None)


def test_a_dropped_publication_is_a_sentence(database: Database, capture: Capture) -> None:
    fill(database, 10)
    assert len(capture.step()) == 10
    database.execute(f"DROP PUBLICATION publication_{database.name}")
    fill(database, 10, 11)
    with pytest.raises(SourceError, match="publication"):
        capture.step()
