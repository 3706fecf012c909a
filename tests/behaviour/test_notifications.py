"""Notifications of snapshots on a real server, in Debezium's order and words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, drained, execute, send
from tests.conftest import Database


def notified(file: Path) -> list[tuple[str, dict[str, str]]]:
    """Type and additional data of all notifications, the connector's name aside."""
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    assert all(note["additional_data"].pop("connector_name") == "t" and note["timestamp"] > 0 for note in found)
    return [(note["type"], note["additional_data"]) for note in found]


def noting(folder: Path) -> tuple[Path, dict[str, str]]:
    """A file for notifications, and the properties that have them written there."""
    file = folder / "told.jsonl"
    return file, {"notification__enabled__channels": "file", "notification__file": str(file)}


def test_the_life_of_a_pipeline(database: Database, tmp_path: Path) -> None:
    database.execute(SIGNALS, *ROWS, "CREATE TABLE nothing (id int PRIMARY KEY)")
    file = tmp_path / "told.jsonl"
    given = {
        "signal__data__collection": "public.signals",
        "incremental__snapshot__chunk__size": "4",
        "notification__enabled__channels": "file",
        "notification__file": str(file),
        "table__include__list": r"public\.(t|nothing)",
    }
    with capturing(database, **given) as capture:
        drained(capture)
        read, captured = "public.t,public.nothing", "public.nothing,public.t,public.signals"
        ends = {"data_collections": captured, "status": "SUCCEEDED"}
        assert notified(file) == [
            ("STARTED", {}),
            ("IN_PROGRESS", {"current_collection_in_progress": "public.nothing", "data_collections": read}),
            ("TABLE_SCAN_COMPLETED", {"scanned_collection": "public.nothing", **ends, "total_rows_scanned": "0"}),
            ("IN_PROGRESS", {"current_collection_in_progress": "public.t", "data_collections": read}),
            ("TABLE_SCAN_COMPLETED", {"scanned_collection": "public.t", **ends, "total_rows_scanned": "10"}),
            ("COMPLETED", {}),
        ]
        execute(database, "s1")
        drained(capture)
        listed = {"data_collections": "public.t"}
        keys = [{"maximum_key": "10", "last_processed_key": key} for key in ("4", "8", "10")]
        progress = [{"current_collection_in_progress": "public.t", **listed, **key} for key in keys]
        end = {"scanned_collection": "public.t", **listed, "status": "SUCCEEDED", "total_rows_scanned": "10"}
        assert notified(file) == [
            ("STARTED", listed),
            *(("IN_PROGRESS", one) for one in progress),
            ("TABLE_SCAN_COMPLETED", end),
            ("COMPLETED", {}),
        ]
        execute(database, "s2")
        capture.step()
        send(database, "p", "pause-snapshot", None)
        drained(capture)
        send(database, "r", "resume-snapshot", None)
        capture.step()
        send(database, "x", "stop-snapshot", '{"data-collections": ["public.t"]}')
        drained(capture)
        found = [one for one in notified(file) if one[0] != "IN_PROGRESS"]
        assert [kind for kind, _ in found] == ["STARTED", "PAUSED", "RESUMED", "ABORTED"]
        assert found[-1] == ("ABORTED", listed)
        offset, properties = capture.offset, dict(capture.config.given)
    second = Capture(database, properties)
    second.offset = offset
    database.execute("DELETE FROM t WHERE id = 1")
    drained(second)
    second.close()
    assert notified(file) == [("SKIPPED", {})]


def test_a_pipeline_without_a_first_snapshot(database: Database, tmp_path: Path) -> None:
    database.execute(*ROWS)
    file, given = noting(tmp_path)
    with capturing(database, snapshot__mode="no_data", **given) as capture:
        capture.step()
        database.execute("DELETE FROM t WHERE id = 1")
        drained(capture)
    assert notified(file) == [("SKIPPED", {})]


def test_a_blocking_snapshot_sends_the_notifications_of_a_first_one(database: Database, tmp_path: Path) -> None:
    """Debezium runs one by the code of the first; the tables named with each are those that the signal asks for."""
    database.execute(SIGNALS, *ROWS, "CREATE TABLE nothing (id int PRIMARY KEY)", "CREATE TABLE other (id int)")
    file = tmp_path / "told.jsonl"
    given = {
        "signal__data__collection": "public.signals",
        "snapshot__mode": "no_data",
        "notification__enabled__channels": "file,sink",
        "notification__file": str(file),
        "notification__sink__topic__name": "told",
    }
    with capturing(database, **given) as capture:
        drained(capture)
        notified(file)
        data = '{"type": "blocking", "data-collections": ["public.t", "public.nothing"]}'
        send(database, "s1", "execute-snapshot", data)
        drained(capture)
        listed = {"data_collections": "public.nothing,public.t"}
        read = {"data_collections": "public.t,public.nothing"}
        ends = {**listed, "status": "SUCCEEDED"}
        assert notified(file) == [
            ("STARTED", {}),
            ("IN_PROGRESS", {"current_collection_in_progress": "public.nothing", **read}),
            ("TABLE_SCAN_COMPLETED", {"scanned_collection": "public.nothing", **ends, "total_rows_scanned": "0"}),
            ("IN_PROGRESS", {"current_collection_in_progress": "public.t", **read}),
            ("TABLE_SCAN_COMPLETED", {"scanned_collection": "public.t", **ends, "total_rows_scanned": "10"}),
            ("COMPLETED", {}),
        ]


def test_a_parallel_snapshot_sends_a_notification_for_each_chunk(database: Database, tmp_path: Path) -> None:
    more = "INSERT INTO t SELECT n, 0, repeat('x', 500) FROM generate_series(11, 1000) n"
    database.execute(*ROWS, more, "CREATE TABLE nothing (id int PRIMARY KEY)", "CREATE TABLE other (id int)")
    file, noted = noting(tmp_path)
    given = {"snapshot__max__threads": "2", "snapshot__include__collection__list": r"public\.(t|nothing)"}
    with capturing(database, **given, **noted) as capture:
        drained(capture)
    found = notified(file)
    captured = {"data_collections": "public.nothing,public.t"}
    one = {"chunk_index": "0", "total_chunks": "1"}
    assert found[:6] == [
        ("STARTED", {}),
        (
            "IN_PROGRESS",
            {"current_collection_in_progress": "public.nothing", "data_collections": "public.t,public.nothing"},
        ),
        (
            "TABLE_CHUNK_IN_PROGRESS",
            {"current_collection_in_progress": "public.nothing", **one, "total_rows_scanned": "0"},
        ),
        ("TABLE_CHUNK_COMPLETED", {"scanned_collection": "public.nothing", **captured, **one, "status": "SUCCEEDED"}),
        (
            "TABLE_SCAN_COMPLETED",
            {"scanned_collection": "public.nothing", **captured, "status": "SUCCEEDED", "total_rows_scanned": "0"},
        ),
        ("IN_PROGRESS", {"current_collection_in_progress": "public.t", "data_collections": "public.t,public.nothing"}),
    ]
    chunks = [(kind, data) for kind, data in found[6:] if "chunk_index" in data]
    total = len(chunks) // 2
    assert total > 1
    assert [(kind, data["chunk_index"], data["total_chunks"]) for kind, data in chunks] == [
        (kind, str(index), str(total))
        for index in range(total)
        for kind in ("TABLE_CHUNK_IN_PROGRESS", "TABLE_CHUNK_COMPLETED")
    ]
    end = {"scanned_collection": "public.t", **captured, "status": "SUCCEEDED", "total_rows_scanned": "1000"}
    assert found[-2:] == [("TABLE_SCAN_COMPLETED", end), ("COMPLETED", {})]


def test_notifications_name_the_surrogate_key_column_of_the_signal(database: Database, tmp_path: Path) -> None:
    database.execute(SIGNALS, *ROWS)
    file, given = noting(tmp_path)
    with capturing(database, **GIVEN, **given) as capture:
        drained(capture)
        execute(database, "s1", ', "surrogate-key": "note", "additional-condition": "id < 4"')
        drained(capture)
    data = next(data for kind, data in notified(file) if kind == "IN_PROGRESS")
    assert (data["maximum_key"], data["last_processed_key"]) == ("note 3", "note 3")


def test_a_blocking_snapshot_of_no_table_begins_and_ends(database: Database, tmp_path: Path) -> None:
    database.execute(SIGNALS, *ROWS)
    file, given = noting(tmp_path)
    with capturing(database, **GIVEN, **given) as capture:
        drained(capture)
        notified(file)
        execute(database, "s1", ', "type": "blocking"', table="public.absent")
        assert drained(capture) == []
        assert notified(file) == [("STARTED", {}), ("COMPLETED", {})]
        database.execute("DELETE FROM t WHERE id = 3")
        assert [row["op"] for row in drained(capture)] == ["d"]


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("id = 3", "syntax error"),
        ("SELECT id FROM t", "leaves out the table's last columns: version, note"),
    ],
)
def test_a_blocking_snapshot_that_the_server_rejects_is_aborted_and_given_up(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, select: str, said: str
) -> None:
    database.execute(SIGNALS, *ROWS)
    file, given = noting(tmp_path)
    with capturing(database, **GIVEN, **given) as capture:
        drained(capture)
        notified(file)
        execute(database, "bad", f', "type": "blocking", "additional-condition": "{select}"')
        execute(database, "good", ', "additional-condition": "id = 5"')
        database.execute("DELETE FROM t WHERE id = 3")
        assert [(row["op"], (row["after"] or row["before"])["id"]) for row in drained(capture)] == [("d", 3), ("r", 5)]
    assert "signal bad (public.t) is given up" in caplog.text
    assert said in caplog.text
    assert "ABORTED" in [kind for kind, _ in notified(file)]


def test_notifications_of_a_stop_name_the_tables_and_an_unknown_table(database: Database, tmp_path: Path) -> None:
    """Debezium's checkAndProcessStopFlag and isTableInvalid."""
    database.execute(SIGNALS, *ROWS, "CREATE TABLE u (id int PRIMARY KEY)", "CREATE TABLE v (id int PRIMARY KEY)")
    file, given = noting(tmp_path)
    with capturing(database, **GIVEN, **given) as capture:
        drained(capture)
        notified(file)
        send(database, "s1", "execute-snapshot", '{"data-collections": ["public.t", "public.u", "public.v"]}')
        capture.step()
        send(database, "x1", "stop-snapshot", '{"data-collections": ["public.v"]}')
        capture.step()
        send(database, "x2", "stop-snapshot", "{}")
        drained(capture)
        assert [one for one in notified(file) if one[0] != "IN_PROGRESS"] == [
            ("STARTED", {"data_collections": "public.t,public.u,public.v"}),
            ("ABORTED", {"data_collections": "public.v"}),
            ("ABORTED", {"data_collections": "public.u,public.t"}),
        ]
        execute(database, "s2", table="public.nowhere")
        assert drained(capture) == []
        listed = {"data_collections": "public.nowhere"}
        end = {"scanned_collection": "public.nowhere", "total_rows_scanned": "0", "status": "UNKNOWN_SCHEMA"}
        assert notified(file) == [
            ("STARTED", listed),
            ("TABLE_SCAN_COMPLETED", {**listed, **end}),
            ("COMPLETED", {}),
        ]


def test_notifications_of_a_signal_during_a_blocking_snapshot(database: Database, tmp_path: Path) -> None:
    database.execute(SIGNALS, *ROWS, "CREATE TABLE u (id int PRIMARY KEY)")
    file, given = noting(tmp_path)
    with capturing(database, **GIVEN, **given) as capture:
        drained(capture)
        execute(database, "s1", ', "type": "blocking"', table="public.u")
        execute(database, "s2")
        capture.step()
        notified(file)
        send(database, "p", "pause-snapshot", None)
        capture.step()
        kinds = [kind for kind, _ in notified(file)]
        assert kinds == ["PAUSED", "STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"]
