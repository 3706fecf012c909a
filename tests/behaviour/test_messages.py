"""Logical messages, heartbeats and replica identities that the connector sets, on a real server."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import ConfigError, SourceError
from tailrace.events.record import RecordEncoder
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database

KEPT = "a2VwdCBhbHRob3VnaCByb2xsZWQgYmFjaw=="
EMIT = "SELECT pg_logical_emit_message({}, '{}', '{}')"


def records(capture: Capture) -> list[dict[str, Any]]:
    """The Kafka records of the next step."""
    encoder = RecordEncoder(capture.config, SOURCE, "run")
    rows: list[dict[str, Any]] = []
    for split in capture.plan():
        for chunk in capture.reader.read(split):
            for batch in (*chunk.batches, *chunk.controls):
                rows += [row for part in encoder.encode(batch) for row in part.to_pylist()]  # type: ignore[arg-type]
    return rows


def message(record: dict[str, Any]) -> dict[str, Any]:
    """The payload of a message's value."""
    payload: dict[str, Any] = json.loads(record["value"])["payload"]
    return payload


def test_messages_inside_and_outside_transactions(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with capturing(database) as capture:
        capture.step()
        database.execute(EMIT.format("false", "outside", "now"), EMIT.format("true", "inside", "then"))
        with database.connect() as connection:
            connection.execute("BEGIN")
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute(EMIT.format("false", "outside", "kept although rolled back").encode())
            connection.execute(EMIT.format("true", "inside", "never seen").encode())
            connection.execute("ROLLBACK")
            # A message of its own is flushed with whatever is committed next.
            connection.execute("CREATE TABLE later ()")
        found = records(capture)
    assert [record["topic"] for record in found] == ["t.message"] * 3
    assert [json.loads(record["key"])["payload"] for record in found] == [
        {"prefix": "outside"},
        {"prefix": "inside"},
        {"prefix": "outside"},
    ]
    payloads = [message(record) for record in found]
    assert [payload["message"]["content"] for payload in payloads] == [
        "bm93",
        "dGhlbg==",
        "a2VwdCBhbHRob3VnaCByb2xsZWQgYmFjaw==",
    ]
    assert [payload["source"]["txId"] is None for payload in payloads] == [True, False, True]
    assert all(payload["op"] == "m" and payload["source"]["table"] == "" for payload in payloads)
    assert all(record["headers"] is None for record in found)


def test_messages_are_chosen_by_prefix_and_shown_as_bytes_are(database: Database) -> None:
    chosen = {"message__prefix__include__list": "foo.*,BAR", "binary__handling__mode": "hex"}
    with capturing(database, **chosen) as capture:
        capture.step()
        database.execute(*(EMIT.format("true", prefix, "x") for prefix in ("foo", "food", "bar", "barn", "")))
        found = [message(record)["message"] for record in records(capture)]
    assert found == [{"prefix": prefix, "content": "78"} for prefix in ("foo", "food", "bar")]


def test_a_message_is_read_once_whatever_the_ranges(database: Database) -> None:
    with capturing(database) as capture:
        capture.step()
        found = []
        for number in range(120):
            database.execute(EMIT.format("false" if number % 2 else "true", "p", "x" * number * 300 + f"|{number}"))
            if number % 3 == 0:
                found += [row["after"]["content"] for row in capture.step()]
            if number % 5 == 0:
                capture.forget_streams()
        database.execute("CREATE TABLE later ()")
        found += [row["after"]["content"] for row in capture.step()]
    assert [int(content.split(b"|")[1]) for content in found] == list(range(120))


def test_heartbeats_are_sent_while_nothing_changes(database: Database) -> None:
    database.execute("CREATE TABLE beats (n int PRIMARY KEY)", "INSERT INTO beats VALUES (0)")
    action = {"heartbeat__action__query": "UPDATE beats SET n = n + 1"}
    with capturing(database, heartbeat__interval__ms="100", snapshot__mode="no_data", **action) as capture:
        capture.step()
        topics: list[str] = []
        deadline = time.monotonic() + 120
        while topics.count("__debezium-heartbeat.t") < 3 or "t.public.beats" not in topics:
            topics += [record["topic"] for record in records(capture)]
            assert time.monotonic() < deadline, topics
            time.sleep(0.05)


def test_a_heartbeat_waits_for_its_interval(database: Database) -> None:
    with capturing(database, heartbeat__interval__ms="86400000") as capture:
        capture.step()
        database.execute(EMIT.format("true", "p", "x"))
        # One is forced at the end of the snapshot, and the next one is a day away.
        assert [record["topic"] for record in records(capture)] == ["t.message", "__debezium-heartbeat.t"]
        database.execute(EMIT.format("true", "p", "y"))
        assert [record["topic"] for record in records(capture)] == ["t.message"]


def test_no_heartbeat_follows_a_snapshot_that_is_skipped(database: Database) -> None:
    with capturing(database, heartbeat__interval__ms="86400000", snapshot__mode="no_data") as capture:
        capture.step()
        database.execute(EMIT.format("true", "p", "x"))
        assert [record["topic"] for record in records(capture)] == ["t.message"]


def test_a_failing_heartbeat_query_is_logged_and_harmless(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with capturing(database, heartbeat__interval__ms="1", heartbeat__action__query="SELECT 1/0") as capture:
        capture.step()
        assert "__debezium-heartbeat.t" in [record["topic"] for record in records(capture)]
    assert "division by zero" in caplog.text


def identity(database: Database, table: str) -> str:
    with database.connect() as connection:
        row = connection.execute("SELECT relreplident::text FROM pg_class WHERE relname = %s", [table]).fetchone()
    assert row is not None
    return str(row[0])


def test_replica_identities_are_set(database: Database) -> None:
    database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v text)",
        "CREATE TABLE b (id int PRIMARY KEY, u int NOT NULL)",
        "CREATE UNIQUE INDEX by_u ON b (u)",
        "CREATE TABLE c (id int PRIMARY KEY)",
    )
    with capturing(database, replica__identity__autoset__values=r"public\.a:full,public\.b:INDEX by_u") as capture:
        capture.step()
    assert [identity(database, table) for table in "abc"] == ["f", "i", "d"]


def test_an_identity_that_cannot_be_set_is_a_sentence(database: Database) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    with (
        capturing(database, replica__identity__autoset__values=r"public\.a:INDEX nowhere") as capture,
        pytest.raises(SourceError, match="nowhere"),
    ):
        capture.step()
    both = r"public\.a:FULL,public\..*:NOTHING"
    with capturing(database, replica__identity__autoset__values=both) as capture, pytest.raises(ConfigError):
        capture.step()


def test_messages_are_left_out_by_prefix(database: Database) -> None:
    with capturing(database, message__prefix__exclude__list="foo.*") as capture:
        capture.step()
        database.execute(*(EMIT.format("true", prefix, "x") for prefix in ("foobar", "bar", "FOO", "afoo")))
        found = records(capture)
    assert [json.loads(record["key"])["payload"]["prefix"] for record in found] == ["bar", "afoo"]


def test_names_of_control_topics(database: Database) -> None:
    given = {"heartbeat__interval__ms": "1", "topic__heartbeat__name": "beats", "snapshot__mode": "no_data"}
    noted = {"notification__enabled__channels": "sink", "notification__sink__topic__name": "notes"}
    with capturing(database, **given, **noted) as capture:
        capture.step()
        database.execute(EMIT.format("true", "p", "x"))
        assert [record["topic"] for record in records(capture)] == ["t.message", "notes"]
        database.execute(EMIT.format("true", "p", "y"))
        assert [record["topic"] for record in records(capture)] == ["t.message", "beats"]
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capturing(database, slot__name="noted", **noted) as capture:
        assert {record["topic"] for record in records(capture)} == {"t.public.t", "notes"}
