"""A blocking snapshot is read in full, whatever ends the connection that holds its exported snapshot, and whenever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tailrace.connectors.postgres.server import publication_watch as watch
from tailrace.errors import SourceError
from tailrace.snapshot import blocking
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.capture import Capture, capturing, rows
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, Row, drained, execute, keyed
from tests.behaviour.streams import eventually
from tests.conftest import Database

ALL = [("r", n) for n in range(1, 11)]
BLOCKING = ', "type": "blocking"'


@pytest.fixture
def capture(database: Database) -> Iterator[Capture]:
    """A pipeline that streams, and a table of ten rows."""
    database.execute(SIGNALS, *ROWS)
    with capturing(database, **GIVEN) as capture:
        capture.step()
        yield capture


def holders(database: Database) -> list[int]:
    """The server processes that hold an exported snapshot open."""
    with database.connect() as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE '%%snapshot' AND datname = %s"
        return [pid for (pid,) in connection.execute(query, [database.name])]


def end_holder(database: Database) -> None:
    (pid,) = holders(database)
    with database.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])


def exported(capture: Capture) -> None:
    """Plan and read the batch that ends where the snapshot is exported; the next one reads the tables."""
    execute(capture.database, "s1", BLOCKING)
    while not holders(capture.database):
        assert "r" not in [row["op"] for row in capture.step()]


def restarted(capture: Capture) -> Capture:
    """The same pipeline by a new planner, at the same offset."""
    properties = {name: value for name, value in capture.config.given.items() if name != "topic.prefix"}
    capture.close()
    second = Capture(capture.database, properties)
    second.offset = capture.offset
    return second


def test_the_holder_ends_between_two_batches(capture: Capture, caplog: pytest.LogCaptureFixture) -> None:
    exported(capture)
    end_holder(capture.database)
    assert keyed(drained(capture)) == ALL
    assert "the snapshot is exported again" in caplog.text


def test_the_holder_ends_again_and_again_while_rows_change(capture: Capture) -> None:
    exported(capture)
    found = []
    for version in range(1, 4):
        end_holder(capture.database)
        capture.database.execute(f"UPDATE t SET version = {version}, note = 'again' WHERE id = {version}")
        found += [row for row in capture.step() if row["table"] == "public.t"]
    found += drained(capture)
    reads = {row["after"]["id"]: row["after"]["version"] for row in found if row["op"] == "r"}
    assert reads == {n: n if n < 4 else 0 for n in range(1, 11)}


def test_the_holder_ends_before_a_task_reads(capture: Capture) -> None:
    """The task fails, and the query with it. The next start repeats the batch without the rows, and then reads them."""
    exported(capture)
    start = capture.offset
    splits = capture.plan()
    end_holder(capture.database)
    with pytest.raises(SourceError, match=r"exported snapshot .* is gone"):
        rows(chunk for split in splits for chunk in capture.reader.read(split))
    second = restarted(capture)
    assert (
        rows(chunk for split in second.reader.plan(start, second.offset) for chunk in second.reader.read(split)) == []
    )
    assert keyed(drained(second)) == ALL
    second.close()


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_a_timeout_of_the_database_does_not_end_the_holder(capture: Capture, setting: str) -> None:
    capture.database.execute(f"ALTER DATABASE {capture.database.name} SET {setting} = '500ms'")
    exported(capture)
    (holder,) = holders(capture.database)
    time.sleep(1)
    assert holders(capture.database) == [holder]
    assert keyed(drained(capture)) == ALL


def test_the_server_restarts_between_two_batches() -> None:
    with EmbeddedPostgres() as server:
        server.create_database("shop")
        database = Database(server, "shop")
        database.execute(SIGNALS, *ROWS)
        with capturing(database, **GIVEN) as capture:
            capture.step()
            exported(capture)
            server.stop("immediate")
            restart = threading.Timer(2, server.start)
            restart.start()
            assert keyed(drained(capture)) == ALL
            restart.join()


def test_an_open_transaction_delays_the_snapshot_and_nothing_else(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot of the export is created when the transactions that began before have ended."""
    with in_the_way(database, monkeypatch, slot__max__retries="3") as capture:
        with psycopg.connect(database.dsn) as writing:
            writing.execute("INSERT INTO other VALUES (1)")
            execute(database, "s1", BLOCKING)
            assert keyed(others(capture)) == [("c", 77)]
            writing.rollback()
        assert "cannot create the slot" in caplog.text
        assert "trying again" not in caplog.text, "the stream would wait longer"
        assert keyed(at_last(capture)) == ALL


def test_a_lock_on_the_table_delays_the_snapshot_and_nothing_else(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"snapshot__lock__timeout__ms": "200", "snapshot__locking__mode": "shared"}
    with in_the_way(database, monkeypatch, **limits) as capture:
        exported(capture)
        with psycopg.connect(database.dsn) as locking:
            locking.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
            assert keyed(others(capture)) == [("c", 77)]
            assert "the publication cannot be checked" in capture.offset["snapshots"]["warnings"][0]
        assert "the lock for the snapshot cannot be had" in caplog.text
        assert keyed(at_last(capture)) == ALL
        assert "warnings" not in capture.offset["snapshots"]


@contextmanager
def in_the_way(database: Database, monkeypatch: pytest.MonkeyPatch, **more: str) -> Iterator[Capture]:
    """A pipeline of two tables that tries a snapshot for a second, and again at once."""
    monkeypatch.setattr(blocking, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(watch, "INTERVAL_SECONDS", 0.0)
    database.execute(SIGNALS, *ROWS, "CREATE TABLE other (id int PRIMARY KEY)")
    limits = {"internal__create__slot__command__timeout": "1"}
    with capturing(database, **GIVEN, **limits, **more) as capture:
        capture.step()
        yield capture


def at_last(capture: Capture) -> list[Row]:
    """What comes once a try has succeeded: on a busy machine one may take longer than its second."""
    found: list[Row] = eventually(lambda: drained(capture))
    return found


def others(capture: Capture) -> list[Row]:
    """What comes, signals aside, of a row in another table."""
    capture.database.execute("INSERT INTO other VALUES (77)")
    return [row for _ in range(3) for row in capture.step() if row["table"] != "public.signals"]
