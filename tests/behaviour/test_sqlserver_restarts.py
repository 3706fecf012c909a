"""Errors of a SQL Server that restarts, recovers or fails over, by the genuine drivers. On the stand-in."""

from __future__ import annotations

import json
import logging
import threading
import time
from contextlib import closing, suppress
from itertools import cycle
from typing import Any

import pymssql
import pytest

from tailrace.connectors.sqlserver import arrow_client, client
from tailrace.connectors.sqlserver.failures import FAILURES, number_of
from tailrace.errors import SourceError
from tailrace.snapshot import incremental
from tests.behaviour.stepping import Stepped, stepping
from tests.behaviour.streams import eventually
from tests.conformance.sqlserver import LOGIN, SqlServerSource
from tests.servers.sqlserver.tsql.errors import SqlError, error

FAST = {"retriable__restart__connector__wait__ms": "50"}
# The statements of an incremental snapshot: what reads a chunk, and what marks its window.
CHUNK, MARK = r"SELECT TOP \d+ CONVERT.* AS k0, \[id\]", r"INSERT INTO .*signals.* VALUES"
# What log-ins get while a server starts, while a database is recovered or restored, or goes to another node.
PHASES = {
    "it is paused": (17142,),
    "it is upgraded": (18401,),
    "the database is opened": (4060, 18456),
    "its default database is opened": (4064, 18456),
    "the database is recovered": (922, 18456),
    "the database is restored": (927, 18456),
    "the database is in transition": (952, 18456),
    "the replica has no role": (983,),
    "the replica is not read": (976,),
    "the replica waits for versions": (4221,),
    "Azure moves it": (40613,),
    "Azure is busy": (40501,),
    "Azure is reconfigured": (40197,),
}
# What statements get.
LATER = (596, 601, 615, 701, 845, 921, 922, 927, 952, 976, 983, 1204, 1205, 1222, 3960, 3980, 8645, 9002, 40143, 40166)
REFUSED = {"a password": (18456,), "a database": (4060, 18456), "a replica without intent": (978,)}


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


def errors(source: SqlServerSource, *numbers: int) -> list[SqlError]:
    return [error(each, LOGIN if each in (18456, 18401) else source.name, source.name) for each in numbers]


def test_a_pipeline_waits_while_log_ins_are_refused(source: SqlServerSource, caplog: pytest.LogCaptureFixture) -> None:
    faults = source.server.faults
    with stepping("sqlserver", source, table__include__list=r"dbo\.orders", **FAST) as stream:
        for number, (phase, numbers) in enumerate(PHASES.items()):
            source.run(f"INSERT INTO orders VALUES ({number}, 1, N'a')")
            stream.capture._connector._server.close()  # type: ignore[attr-defined]
            before = faults.reported
            caplog.clear()
            with faults.logins(*errors(source, *numbers), times=3), caplog.at_level(logging.WARNING):
                assert [event["after"]["id"] for event in stream.step()[0]] == [number], phase
            assert faults.reported > before, phase
            assert "trying again" in caplog.text, phase


def test_statements_that_a_restart_or_the_load_ends_are_sent_again(source: SqlServerSource) -> None:
    faults = source.server.faults
    with stepping("sqlserver", source, table__include__list=r"dbo\.orders", **FAST) as stream:
        source.run("INSERT INTO orders VALUES (0, 1, N'a')")
        stream.step()
        for number, pattern in zip(LATER, cycle(("fn_cdc_get_max_lsn", "cdc_data", "change_tables")), strict=False):
            source.run("INSERT INTO orders SELECT MAX(id) + 1, 1, N'a' FROM orders")
            source.settle()
            with faults.statements(pattern, *errors(source, number), times=2):
                assert len(stream.step()[0]) == 1, (number, pattern)


@pytest.mark.parametrize("refused", REFUSED)
def test_the_first_connection_of_a_run_fails_at_once(source: SqlServerSource, refused: str) -> None:
    given = {"table.include.list": r"dbo\.orders", **{name.replace("__", "."): each for name, each in FAST.items()}}
    faults = source.server.faults
    before = faults.reported
    with faults.logins(*errors(source, *REFUSED[refused])), pytest.raises(SourceError) as caught:
        Stepped("sqlserver", source, given)
    assert caught.value.remedy
    assert faults.reported - before <= 2, "tried once, and queried once for what FreeTDS does not tell"


@pytest.mark.parametrize("encrypt", ["false", "true"])
def test_the_number_of_each_refused_log_in_is_its_own(source: SqlServerSource, encrypt: str) -> None:
    """FreeTDS keeps the most severe message of all connections that were not made, whatever comes later."""
    given = {"driver.encrypt": encrypt, "driver.trustServerCertificate": "true"}
    config = Stepped("sqlserver", source, given).config
    for numbers in ((40501,), (4060, 18456), (18456,), (983,), (18401,), (922, 18456), (40613,)):
        with source.server.faults.logins(*errors(source, *numbers)):
            for module in (client, arrow_client):
                with pytest.raises(pymssql.Error) as caught:
                    module.connect(config)
                assert number_of(caught.value) == numbers[0]
                assert FAILURES.is_transient(caught.value) == (numbers != (18456,))
    with closing(client.connect(config)) as connection:
        assert connection.value("SELECT 1") == 1


@pytest.mark.parametrize("number", [1205, 3960, *(pytest.param(each, marks=pytest.mark.long) for each in (1222, 596))])
def test_a_snapshot_that_a_deadlock_or_a_lock_ends_is_read_again(source: SqlServerSource, number: int) -> None:
    """The task fails by an error of which the run knows that it passes."""
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    stream = Stepped("sqlserver", source, {"table.include.list": r"dbo\.orders"})
    start = stream.offset
    end = stream.capture.head(start, None)
    (split,) = stream.capture.plan(start, end)
    rows = r"SELECT \[id\], \[v\], \[note\] FROM"
    with source.server.faults.statements(rows, *errors(source, number)), pytest.raises(SourceError) as caught:
        list(stream.capture.read(split))
    assert stream.capture.is_passing(caught.value)
    batches = [batch for chunk in stream.capture.read(split) for batch in chunk.batches if batch.schema_change is None]
    assert sum(map(len, batches)) == 1
    stream.close()


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        (CHUNK, 1205),
        (MARK, 596),
        pytest.param(CHUNK, 596, marks=pytest.mark.long),
        pytest.param(MARK, 1205, marks=pytest.mark.long),
    ],
)
def test_chunks_and_their_marks_that_a_deadlock_ends_are_tried_again(
    source: SqlServerSource, monkeypatch: pytest.MonkeyPatch, pattern: str, number: int
) -> None:
    """And meanwhile the log goes on."""
    monkeypatch.setattr(incremental, "RETRY_SECONDS", 0.1)
    given = {"signal__data__collection": f"{source.name}.dbo.signals", "snapshot__mode": "no_data"}
    faults = source.server.faults
    with stepping("sqlserver", source, table__include__list=r"dbo\.orders", **given, **FAST) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        source.signal("s", "execute-snapshot", json.dumps({"data-collections": [f"{source.name}.dbo.orders"]}))
        before = faults.reported
        found: list[dict[str, Any]] = []
        with faults.statements(pattern, *errors(source, number), times=2):
            deadline = time.monotonic() + 60
            while len(found) < 2 and time.monotonic() < deadline:
                found += [event for event in stream.step()[0] if event["source"]["table"] == "orders"]
                time.sleep(0.05)
        found += [event for _ in range(2) for event in stream.step()[0] if event["source"]["table"] == "orders"]
        assert faults.reported > before
    assert [event["op"] for event in found] == ["c", "r"]


def test_a_table_that_is_locked_for_long_is_waited_for(
    source: SqlServerSource, caplog: pytest.LogCaptureFixture
) -> None:
    """Under `exclusive`, each attempt as long as snapshot.lock.timeout.ms says."""
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    given = {"snapshot.lock.timeout.ms": "100", "retriable.restart.connector.wait.ms": "50"}
    with closing(source.server.connect(source.name)) as writer, writer.cursor() as cursor:
        cursor.execute("BEGIN TRANSACTION")
        cursor.execute("UPDATE orders SET v = 2")

        def release() -> None:
            with suppress(AssertionError):
                eventually(lambda: "Lock request time out" in caplog.text)
            cursor.execute("COMMIT")

        threading.Thread(target=release).start()
        stream = Stepped("sqlserver", source, {"table.include.list": r"dbo\.orders", **given})
        with caplog.at_level(logging.WARNING):
            found = [event["after"]["v"] for _ in range(2) for event in stream.step()[0]]
        stream.close()
    assert set(found) == {2}, "what is committed meanwhile may come once more by the log"
    assert "Lock request time out" in caplog.text


@pytest.mark.long
def test_readers_that_wait_for_writers_stop_nothing(source: SqlServerSource) -> None:
    """As where the database has no versions of rows: the capture job, clean-up and readers wait for one another."""
    server, stopped = source.server, threading.Event()
    server.readers_wait = True

    def write() -> None:
        with closing(server.connect(source.name)) as writer, writer.cursor() as cursor:
            number = 0
            while not stopped.is_set():
                number += 1
                cursor.execute("BEGIN TRANSACTION")
                cursor.execute(f"INSERT INTO orders VALUES ({number}, 1, N'a')")
                cursor.execute("COMMIT")
                source.written = number  # type: ignore[attr-defined]

    writing = threading.Thread(target=write)
    try:
        with stepping("sqlserver", source, table__include__list=r"dbo\.orders", **FAST) as stream:
            writing.start()
            found = [event["after"]["id"] for _ in range(15) for event in stream.step()[0]]
            stopped.set()
            writing.join()
            found += [event["after"]["id"] for _ in range(2) for event in stream.step()[0]]
        assert found == list(range(1, source.written + 1))  # type: ignore[attr-defined]
    finally:
        stopped.set()
        server.readers_wait = False
