"""Silent connections: planner, stream and snapshot reconnect, or end with an error, within a time limit."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pyarrow.compute as pc
import pytest

from tailrace.connectors import retry
from tailrace.connectors.postgres.log import replication, stream
from tailrace.connectors.postgres.server import silence
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.snapshot import transfer
from tailrace.errors import SourceError
from tests.behaviour.capture import capturing, rows
from tests.behaviour.proxies import DROP, FORWARD, STALL, Link, Proxy, proxy
from tests.behaviour.streams import eventually
from tests.conftest import Database

TABLE = ("CREATE TABLE t (id int PRIMARY KEY, text text)", "INSERT INTO t VALUES (0, 'x')")
# How long what went silent is waited for, in these tests.
QUIET = 0.5
# Within which everything has to go on or to end, on a machine that may be busy.
DEADLINE = 120
MODES = [STALL, DROP]
ONE_OF_THEM = [STALL, pytest.param(DROP, marks=pytest.mark.long)]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "QUIET_SECONDS", QUIET)
    monkeypatch.setattr(silence, "_PROBE_SECONDS", 2)
    monkeypatch.setattr(silence, "_ARRIVAL_SECONDS", 0.3)
    monkeypatch.setattr(replication, "_LEAST_SILENT_SECONDS", QUIET)
    monkeypatch.setattr(retry, "_FIRST_SECONDS", 0.02)


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < DEADLINE


@pytest.fixture
def between(database: Database) -> Iterator[Proxy]:
    """A proxy in front of the database's server."""
    database.execute(*TABLE)
    with proxy(database.server.port) as between:
        yield between


def behind(between: Proxy, **more: str) -> dict[str, str]:
    """Properties of a pipeline that comes through the proxy."""
    port = {"database__port": str(between.port), "database__connectTimeout": "2"}
    return {**port, "status__update__interval__ms": "50", **more}


def ids(found: list[dict[str, Any]]) -> list[int]:
    return [row["after"]["id"] for row in found]


def insert(database: Database, first: int, last: int) -> None:
    database.execute(f"INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series({first}, {last}) n")


# The planner


@pytest.mark.parametrize("mode", MODES)
def test_a_planner_reconnects(database: Database, between: Proxy, mode: str) -> None:
    with capturing(database, **behind(between)) as capture:
        assert ids(capture.step()) == [0]
        between.spoil(mode)
        insert(database, 1, 10)
        assert ids(capture.step()) == list(range(1, 11))


@pytest.mark.parametrize("mode", ONE_OF_THEM)
def test_a_planner_ends_with_an_error_when_nothing_answers(database: Database, between: Proxy, mode: str) -> None:
    with capturing(database, **behind(between, errors__max__retries="1")) as capture:
        capture.step()
        between.spoil(mode, for_all=True)
        with pytest.raises(SourceError, match=r"connection is lost|timeout expired"):
            capture.plan()


def test_a_planner_waits_until_the_network_is_back(
    database: Database, between: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    with capturing(database, **behind(between)) as capture:
        capture.step()
        insert(database, 1, 10)
        between.spoil(STALL, for_all=True)

        def heal() -> None:
            eventually(lambda: "trying again" in caplog.text)
            between.heal()

        with ThreadPoolExecutor(1) as pool:
            healed = pool.submit(heal)
            assert ids(capture.step()) == list(range(1, 11))
            healed.result()
    assert "trying again" in caplog.text
    assert "start again" not in caplog.text


@pytest.mark.parametrize("moment", ["pg_current_wal_flush_lsn", "pg_replication_slots", "pg_stat_replication"])
def test_a_planner_reconnects_during_every_query(database: Database, between: Proxy, moment: str) -> None:
    def spoil(link: Link, data: bytes) -> None:
        if moment.encode() in data:
            between.watch = lambda link, data: None
            link.mode = STALL

    with capturing(database, **behind(between)) as capture:
        capture.step()
        insert(database, 1, 10)
        between.watch = spoil
        assert ids(capture.step()) == list(range(1, 11))


def test_what_a_lost_connection_held_is_free(database: Database, between: Proxy) -> None:
    """Its server process would hold locks for hours, as nobody tells it that its client is gone."""
    with (
        capturing(database, **behind(between)) as capture,
        connect(capture.config) as silent,
        connect(capture.config) as other,
    ):
        silent.execute("SELECT pg_advisory_lock(7)")
        (link,) = [each for each in between.links if each.client.getpeername() == own_address(silent)]
        link.mode = STALL
        with pytest.raises(psycopg.OperationalError, match="connection is lost"):
            silent.execute("SELECT 1")
        other.execute("SELECT pg_advisory_lock(7)")


def own_address(connection: psycopg.Connection[Any]) -> Any:
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        return own.getsockname()


@pytest.mark.long
def test_a_query_that_takes_long_is_waited_for(database: Database, between: Proxy) -> None:
    with capturing(database, **behind(between)) as capture, connect(capture.config) as connection:
        assert connection.execute("SELECT 'slept', pg_sleep(4)").fetchone() == ("slept", "")
        with database.connect() as other:
            other.execute("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
            threading.Timer(3, other.execute, ["COMMIT"]).start()
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
            time.sleep(0.2)


def test_a_limit_of_silence_that_the_user_sets(database: Database, between: Proxy) -> None:
    with capturing(database, **behind(between, database__socketTimeout="1")) as capture:
        with connect(capture.config) as connection, pytest.raises(psycopg.OperationalError, match="connection is lost"):
            connection.execute("SELECT pg_sleep(20)")
        assert connection.closed


# The stream


@pytest.mark.parametrize("mode", ONE_OF_THEM)
def test_a_stream_that_goes_silent_while_it_is_read(
    database: Database, between: Proxy, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK_BYTES", 100_000)
    with capturing(database, **behind(between)) as capture:
        capture.step()
        insert(database, 1, 20_000)
        (split,) = capture.plan()
        found: list[dict[str, Any]] = []
        for number, chunk in enumerate(capture.reader.read(split)):
            found += rows([chunk])
            if number in (1, 4):
                between.spoil(mode)
        assert ids(found) == list(range(1, 20_001))


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_that_goes_silent_while_nobody_reads(database: Database, between: Proxy, mode: str) -> None:
    with capturing(database, **behind(between)) as capture:
        capture.step()
        insert(database, 1, 10)
        assert len(capture.step()) == 10
        between.spoil(mode)
        insert(database, 11, 20)
        assert ids(capture.step()) == list(range(11, 21))


def test_a_stream_that_goes_silent_as_it_starts(database: Database, between: Proxy) -> None:
    def spoil(link: Link, data: bytes) -> None:
        if b"START_REPLICATION" in data:
            between.watch = lambda link, data: None
            link.mode = DROP

    with capturing(database, **behind(between)) as capture:
        capture.step()
        insert(database, 1, 10)
        between.watch = spoil
        assert ids(capture.step()) == list(range(1, 11))


@pytest.mark.long
def test_a_server_that_is_silent_for_long_gets_more_time_at_each_try(
    database: Database, between: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is busy with a huge transaction may be as silent as a dead one, each time again."""

    started: set[int] = set()

    def hold_back(link: Link, data: bytes) -> None:
        if b"START_REPLICATION" in data:
            started.add(id(link))
        elif id(link) in started:
            started.remove(id(link))
            link.mode = STALL
            threading.Timer(5 * QUIET, setattr, [link, "mode", FORWARD]).start()

    with capturing(database, **behind(between)) as capture:
        capture.step()
        insert(database, 1, 50_000)  # more than comes before it is held back
        between.watch = hold_back
        assert ids(capture.step()) == list(range(1, 50_001))
    assert 3 <= caplog.text.count("the server has answered nothing") <= 4


# The snapshot


@pytest.mark.parametrize("binary_bytes", [1, 1 << 40])
@pytest.mark.parametrize("mode", ONE_OF_THEM)
def test_a_snapshot_that_goes_silent(
    database: Database, between: Proxy, mode: str, binary_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "BINARY_BYTES", binary_bytes)
    insert(database, 1, 200_000)
    with capturing(database, **behind(between)) as capture:
        (split,) = capture.plan()
        found: list[int] = []
        is_spoilt = False
        for chunk in capture.reader.read(split):
            for batch in chunk.batches:
                found += pc.struct_field(batch.rows.column("after"), "id").to_pylist()
            if not is_spoilt:
                is_spoilt = spoil_readers(between, mode)
        assert is_spoilt
        assert sorted(found) == list(range(200_001))


def spoil_readers(between: Proxy, mode: str) -> bool:
    """Spoil the connections that rows come by, not that which holds the snapshot."""
    busy = [link for link in between.links if link.sent > 1 << 20]
    for link in busy:
        link.mode = mode
    return bool(busy)


@pytest.mark.parametrize("moment", [b"SET TRANSACTION SNAPSHOT", b"COPY", b"pg_type"])
def test_a_snapshot_that_goes_silent_as_it_begins(
    database: Database, between: Proxy, moment: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "BINARY_BYTES", 1)

    def spoil(link: Link, data: bytes) -> None:
        if moment in data:
            between.watch = lambda link, data: None
            link.mode = STALL

    with capturing(database, **behind(between)) as capture:
        (split,) = capture.plan()
        between.watch = spoil
        assert ids(rows(capture.reader.read(split))) == [0]


# What is told to the operating systems


def test_both_ends_probe_the_other(database: Database) -> None:
    with capturing(database) as capture, connect(capture.config) as connection:
        settings = "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"
        shown = [(connection.execute(f"SHOW {name}".encode()).fetchone() or ("",))[0] for name in settings]
        assert shown == ["30", "10", "3", "60000"]
        given = connection.info.get_parameters()
    assert {name: given[name] for name in given if name.startswith(("keepalives", "tcp"))} == {
        "keepalives": "1",
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": "60000",
    }
