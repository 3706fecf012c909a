"""A first snapshot of several micro-batches: what a restart reads, and when it cannot go on where it was."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from tailrace.connectors.postgres.admin.admin import PostgresAdmin
from tailrace.errors import SourceError
from tailrace.operate.status import first
from tailrace.pipeline.checkpoint import CheckpointBatch, CheckpointState
from tailrace.pipeline.snapshot_watch import estimate
from tailrace.snapshot.report import Report
from tests.behaviour.capture import Capture, capturing, reader, rows
from tests.behaviour.streams import eventually
from tests.conftest import Database

SEVERAL = {"snapshot__max__threads": "2", "snapshot__max__threads__multiplier": "3"}


def restart(capture: Capture) -> None:
    """As if the driver had been killed."""
    capture.close()
    capture.reader = reader(capture.config)


def to_the_log(capture: Capture) -> list[dict[str, Any]]:
    """All rows up to the first stretch of the log."""
    found = []
    while capture.offset["phase"] != "stream":
        found += capture.step()
    return found


def keys(found: list[dict[str, Any]], table: str) -> list[Any]:
    return [row["after"]["id"] for row in found if row["table"] == f"public.{table}" and row["op"] == "r"]


@pytest.fixture
def tables(database: Database) -> Database:
    database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v text)",
        "CREATE TABLE b (id uuid PRIMARY KEY)",
        "CREATE TABLE c (id int)",
        "CREATE TABLE d (id numeric, at timestamptz, code bytea, PRIMARY KEY (at, id, code))",
        "INSERT INTO d SELECT n / 7.0, now() + n % 9 * interval '1 s', '\\x00ff' FROM generate_series(1, 500) n",
        "INSERT INTO a SELECT n, 'v' FROM generate_series(1, 600) n",
        "INSERT INTO b SELECT md5(n::text)::uuid FROM generate_series(1, 600) n",
        "INSERT INTO c SELECT n FROM generate_series(1, 3000) n",
    )
    return database


def test_it_resumes_where_it_was(tables: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with capturing(tables, **SEVERAL) as capture:
        found = capture.step()
        assert found == [], "the first batch makes the slot"
        found += capture.step() + capture.step()
        first = len(found)
        assert 0 < first < 600, "part of the first table"
        restart(capture)
        tables.execute("UPDATE a SET v = 'later' WHERE id = 599", "UPDATE a SET v = 'later' WHERE id = 1")
        found += to_the_log(capture)
        assert "the snapshot resumes: 4 tables are left" in caplog.text
        for table, count in (("a", 600), ("b", 600), ("c", 3000), ("d", 500)):
            assert len({str(key) for key in keys(found, table)}) == count
        twice = Counter(keys(found, "a"))
        assert 0 < sum(twice.values()) - 600 <= first, "only the last batch before the restart is read again"
        markers = Counter(row["snapshot"] for row in found if row["table"] == "public.a")
        assert markers["first"] == 1
        assert [row["after"]["id"] for row in found if row["op"] == "u"] == [599, 1], "before what is read later"
        assert [row["after"]["v"] for row in found if row["op"] == "r" and row["after"].get("v") == "later"] == [
            "later"
        ]
        assert capture.step() == [], "and once"


def test_a_truncated_table_is_read_from_its_beginning(tables: Database) -> None:
    with capturing(tables, **SEVERAL) as capture:
        capture.step()
        capture.step(), capture.step()
        restart(capture)
        tables.execute("TRUNCATE a", "INSERT INTO a SELECT n, 'new' FROM generate_series(1, 50) n")
        found = to_the_log(capture)
        read = [row for row in found if row["table"] == "public.a" and row["op"] == "r"]
        assert sorted(row["after"]["id"] for row in read) == list(range(1, 51))
        assert all(row["of"] == str(row["source"]["lsn"]) for row in read), (
            "a snapshot of its own, which replaces the rows of the first"
        )
        assert found.index(read[0]) > max(n for n, row in enumerate(found) if row["op"] in "tc")


def test_a_lost_slot_means_a_new_snapshot(tables: Database, caplog: pytest.LogCaptureFixture) -> None:
    with capturing(tables, **SEVERAL) as capture:
        capture.step()
        capture.step(), capture.step()
        capture.close()
        tables.execute(f"SELECT pg_drop_replication_slot('slot_{tables.name}')")
        restart(capture)
        found = to_the_log(capture)
        assert "the snapshot starts again from the beginning: the slot does not exist; changes from" in caplog.text
        assert sorted(keys(found, "a")) == list(range(1, 601))


def test_what_fits_into_one_batch_is_read_by_one(tables: Database) -> None:
    with capturing(tables) as capture:
        counts = Counter(row["table"].rpartition(".")[2] for row in capture.step())
        assert counts == {"a": 600, "b": 600, "c": 3000, "d": 500}
        assert "reading" not in capture.offset


def test_the_first_batch_is_reported_as_running(tables: Database) -> None:
    """Spark asks for the very first position again for each thing it does with it."""
    with capturing(tables) as capture:
        end = capture.reader.head(capture.offset, None, None)
        assert capture.reader.plan(capture.reader.begin(), end)
        admin = PostgresAdmin(capture.config)
        server = admin.state(end["pipeline"])
        report = first(
            CheckpointState(CheckpointBatch(0, end), None), server, lambda: estimate(admin, capture.config), time.time()
        )
        assert report is not None
        assert report.running


def test_the_progress_is_reported(tables: Database) -> None:
    """By checkpoint and server alone, while it runs and when it is stopped in the middle."""

    def report_of(capture: Capture, before: dict[str, Any]) -> Report | None:
        position, admin = (
            CheckpointState(CheckpointBatch(2, capture.offset), CheckpointBatch(1, before)),
            PostgresAdmin(capture.config),
        )
        return first(position, admin.state(position.pipeline), lambda: estimate(admin, capture.config), time.time())

    with capturing(tables, **SEVERAL) as capture:
        tables.execute("ANALYZE")
        for _ in range(3):
            before = capture.offset
            capture.step()
        report = report_of(capture, before)
        assert report is not None
        assert (report.tables, report.running, report.chunk, report.total) == (4, True, 2, 4700)
        assert report.chunks is not None
        assert 0 < report.rows < 4700
        assert report.seconds_left is not None
        restart(capture)
        # The server takes a moment to see that the connections have ended.
        stopped = eventually(lambda: report if (report := report_of(capture, before)) and not report.running else None)
        assert (stopped.running, stopped.seconds_left) == (False, None)
        before = capture.offset
        capture.step()
        again = report_of(capture, before)
        assert again is not None
        assert again.running, "under another snapshot"
        to_the_log(capture)
        assert report_of(capture, capture.offset) is None


def end_holder(capture: Capture) -> None:
    with capture.database.connect() as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = %s",
            [f"tailrace {capture.offset['pipeline']} snapshot"],
        )
        assert ended.fetchall() == [(True,)]


def test_it_resumes_when_the_exported_snapshot_ends(tables: Database, caplog: pytest.LogCaptureFixture) -> None:
    """By itself, as a restart does: first the log, then what is left under another snapshot."""
    with capturing(tables, **SEVERAL) as capture:
        capture.step()
        found = capture.step() + capture.step()
        first = len(found)
        end_holder(capture)
        tables.execute("UPDATE a SET v = 'later' WHERE id = 599", "UPDATE a SET v = 'later' WHERE id = 1")
        found += to_the_log(capture)
        assert "what is left is read under another" in caplog.text
        for table, count in (("a", 600), ("b", 600), ("c", 3000), ("d", 500)):
            assert len({str(key) for key in keys(found, table)}) == count
        assert 0 < len(keys(found, "a")) - 600 <= first, "only the last batch is read again"
        assert [row["after"]["id"] for row in found if row["op"] == "u"] == [599, 1], "before what is read later"
        tables.execute("INSERT INTO a VALUES (601)")
        assert [row["after"]["id"] for row in capture.step()] == [601]


def test_a_quiet_transaction_is_no_reason_to_end_it(tables: Database) -> None:
    tables.execute(f"ALTER DATABASE {tables.name} SET idle_in_transaction_session_timeout = 100")
    with capturing(tables) as capture:
        splits = capture.plan()
        time.sleep(0.5)
        assert len(rows(chunk for split in splits for chunk in capture.reader.read(split))) == 4700


def test_a_snapshot_that_ended_names_the_connection(tables: Database) -> None:
    with capturing(tables) as capture:
        split = capture.plan()[0]
        end_holder(capture)
        with pytest.raises(SourceError, match="the connection that held it has ended") as caught:
            list(capture.reader.read(split))
        assert (caught.value.where or "").endswith(f"/{tables.name}")
        assert "one of a single batch starts from the beginning" in (caught.value.remedy or "")
