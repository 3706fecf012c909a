"""The log read from a real server: every transaction once and whole, whatever is cut, repeated, killed or taken."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import psycopg
import pytest

from tailrace.capture.log_split import LogSplit
from tailrace.connectors import retry
from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.log import replication, stream
from tailrace.connectors.postgres.log.reader import LogRange
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour import streams_here
from tests.behaviour.capture import Capture, capturing, lasting, rows
from tests.behaviour.entries import TABLE, capturing_entries, confirmed, fill, ids
from tests.conftest import Database


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_SECONDS", 0.02)


def write_concurrently(database: Database, writers: int = 4, transactions: int = 40) -> None:
    """Transactions of several sessions that overlap, some rolled back, some with savepoints, some without a row."""

    def work(writer: int) -> None:
        choice = random.Random(writer)
        number = writer * 1_000_000
        with psycopg.connect(database.dsn) as connection:
            for _ in range(transactions):
                connection.execute("SAVEPOINT s")
                for _ in range(choice.randint(0, 6)):
                    number += 1
                    connection.execute("INSERT INTO entries VALUES (%s, %s, 'note')", [number, writer])
                    if choice.random() < 0.2:
                        connection.execute("ROLLBACK TO SAVEPOINT s")
                connection.execute("SELECT pg_sleep(%s)", [choice.random() / 500])
                (connection.rollback if choice.random() < 0.2 else connection.commit)()

    threads = [threading.Thread(target=work, args=[writer]) for writer in range(1, writers + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture
def capture(database: Database) -> Iterator[Capture]:
    """A pipeline over the table `entries` whose (empty) snapshot has been read."""
    with capturing_entries(database) as capture:
        yield capture


@pytest.fixture
def marking(database: Database) -> Iterator[Capture]:
    """The same with marks of transactions."""
    with capturing_entries(database, **{"provide.transaction.metadata": "true"}) as capture:
        yield capture


def test_a_split_read_again_gives_the_same(database: Database, capture: Capture) -> None:
    fill(database, 500)
    (first,) = capture.plan()
    once = rows(capture.reader.read(first))
    assert ids(once) == list(range(1, 501))
    # The relation is described already on this connection: the second split goes on without.
    fill(database, 500, 501)
    (second,) = capture.plan()
    sticky = rows(capture.reader.read(second))
    assert ids(sticky) == list(range(501, 1001))
    again = rows(capture.reader.read(second))
    capture.forget_streams()
    fresh = rows(capture.reader.read(second))
    assert lasting(sticky) == lasting(again) == lasting(fresh)
    assert all(earlier["order"] < later["order"] for earlier, later in pairwise(fresh))


def test_a_read_given_up_in_the_middle_starts_again(
    database: Database, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK_BYTES", 5_000)
    monkeypatch.setattr(replication, "BLOCK_BYTES", 5_000)
    fill(database, 1000)
    (split,) = capture.plan()
    reading = capture.reader.read(split)
    for _ in range(3):
        next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert ids(rows(capture.reader.read(split))) == list(range(1, 1001))


def read_ranges(database: Database, capture: Capture, slot: str, edges: list[int]) -> list[list[dict[str, object]]]:
    """Each range between two edges, read with a connection of its own from a slot."""
    found = []
    with capturing(database, slot__name=slot, publication__name=f"publication_{database.name}") as reader:
        for start, end in pairwise(edges):
            split = LogSplit(LogRange(f"tailrace {reader.offset['pipeline']}", start, end, None))
            found.append(rows(reader.reader.read(split)))
            reader.forget_streams()
    return found


def test_ranges_share_out_the_transactions(database: Database, marking: Capture) -> None:
    """Wherever the log is cut, also inside a commit record, each transaction lies in exactly one range, whole."""
    slot = f"slot_{database.name}"
    with database.connect() as admin:
        for place in range(3):
            admin.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [slot, f"{slot}_{place}"])
        write_concurrently(database)
        expected = {row[0] for row in admin.execute("SELECT id FROM entries")}
    (whole,) = marking.plan()
    chunks = list(marking.reader.read(whole))
    once = rows(chunks)
    assert len(once) == len(expected)
    assert set(ids(once)) == expected
    ends = [int(str(mark["id"]).split(":")[1]) for mark in _marks(chunks) if mark["status"] == "END"]
    choice = random.Random(7)
    for place in range(3):
        inside = [end - choice.randint(0, 40) for end in choice.sample(ends, 8)]
        anywhere = [choice.randint(whole.range.start, whole.range.end) for _ in range(8)]
        log = whole.range
        edges = [log.start, *sorted({*inside, *anywhere} - {log.start, log.end}), log.end]
        parts = read_ranges(database, marking, f"{slot}_{place}", edges)
        assert [_known(row) for part in parts for row in part] == [_known(row) for row in once]
        transactions = [xid for part in parts for xid in {row["source"]["txId"] for row in part}]  # type: ignore[index]
        assert len(transactions) == len(set(transactions)), "a transaction lies in two ranges"


def _marks(chunks: list[Chunk]) -> list[dict[str, object]]:
    return [mark for chunk in chunks for mark in chunk.marks.to_pylist()]


def _known(row: dict[str, object]) -> tuple[object, ...]:
    source = row["source"]
    assert isinstance(source, dict)
    return row["after"], row["op"], row["ts_us"], source["txId"], source["lsn"]


@pytest.mark.parametrize("size", [pytest.param(7, marks=pytest.mark.long), 1000])
def test_a_killed_walsender_costs_no_row(
    database: Database, capture: Capture, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(stream, "CHUNK_BYTES", 60_000)
    monkeypatch.setattr(replication, "BLOCK_BYTES", 60_000)
    fill(database, 20_000, size=size)
    (split,) = capture.plan()
    choice = random.Random(size)
    kills = 0
    found: list[dict[str, object]] = []
    with database.connect() as admin:
        for chunk in capture.reader.read(split):
            found += rows([chunk])
            if choice.random() < 0.2:
                kills += end_reader(admin, database)
    # One at least: the reader notices a kill when it has read what was on its way, which may be all the rest.
    assert kills
    assert ids(found) == list(range(1, 20_001))
    orders = [row["order"] for row in found]
    assert orders == sorted(set(orders))  # type: ignore[type-var]


def end_reader(admin: psycopg.Connection, database: Database) -> bool:
    """End the walsender; False when it is gone already and its reader has not noticed yet."""
    ended = admin.execute(
        "SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots WHERE slot_name = %s"
        " AND active_pid IS NOT NULL",
        [f"slot_{database.name}"],
    )
    return ended.fetchall() == [(True,)]


def test_a_walsender_killed_at_any_moment_costs_no_row(
    database: Database, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killer knows nothing of the reader's state: it also hits connections that are only being made."""
    monkeypatch.setattr(stream, "CHUNK_BYTES", 60_000)
    monkeypatch.setattr(replication, "BLOCK_BYTES", 60_000)
    fill(database, 30_000, size=500)
    (split,) = capture.plan()
    done = threading.Event()

    def kill() -> None:
        with database.connect() as admin:
            for pause in (0.03, 0.05, 0.08, 0.02, 0.1, 0.04, 0.06, 0.03):
                if done.wait(pause):
                    return
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
                    " AND application_name LIKE 'tailrace%%' AND backend_type = 'walsender'",
                    [database.name],
                )

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = rows(capture.reader.read(split))
    finally:
        done.set()
        killer.join()
    assert ids(found) == list(range(1, 30_001))


def test_a_server_that_crashes_in_the_middle_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK_BYTES", 60_000)
    monkeypatch.setattr(replication, "BLOCK_BYTES", 60_000)
    with EmbeddedPostgres() as server:
        server.create_database("shop")
        database = Database(server, "shop")
        database.execute(TABLE)
        with capturing(database) as capture:
            capture.step()
            fill(database, 10_000)
            (split,) = capture.plan()
            found: list[dict[str, object]] = []
            for number, chunk in enumerate(capture.reader.read(split)):
                found += rows([chunk])
                if number in (2, 6):
                    server.restart("immediate")
            assert ids(found) == list(range(1, 10_001))
            fill(database, 10, 10_001)
            assert ids(capture.step()) == list(range(10_001, 10_011))


@pytest.mark.parametrize("version", [pytest.param(16, marks=pytest.mark.long), 18])
def test_an_idle_stream_does_not_keep_the_server_from_stopping(version: int) -> None:
    """A server told to stop waits for its readers to confirm what it sent; one at rest leaves, and comes back."""
    with EmbeddedPostgres(version) as server:
        server.create_database("shop")
        database = Database(server, "shop")
        database.execute(TABLE)
        with capturing(database) as capture:
            capture.step()
            fill(database, 10)
            assert len(capture.step()) == 10
            fill(database, 10, first=11)
            begin = time.monotonic()
            server.restart("fast")
            assert time.monotonic() - begin < 50, "the server waited for the reader, for wal_sender_timeout"
            assert ids(capture.step()) == list(range(11, 21))


def test_the_slot_never_passes_what_is_being_read(
    database: Database, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK_BYTES", 20_000)
    monkeypatch.setattr(replication, "BLOCK_BYTES", 20_000)
    for round_ in range(4):
        fill(database, 1000, 1 + 1000 * round_)
        (split,) = capture.plan()
        for _ in capture.reader.read(split):
            assert confirmed(database) <= split.range.start
        assert confirmed(database) <= split.range.start
    assert confirmed(database) > 0


def test_what_is_read_ahead_is_bounded_and_not_confirmed(
    database: Database, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "AHEAD_BYTES", 50_000)
    fill(database, 10)
    (before,) = capture.plan()
    assert len(rows(capture.reader.read(before))) == 10
    fill(database, 5000, first=11)
    ahead = held(before.range.application)
    deadline = time.monotonic() + 60
    while not ahead.is_full:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)  # time to take more, and to report it
    assert ahead.ahead_bytes < 51_000
    assert confirmed(database) <= before.range.start
    assert ids(capture.step()) == list(range(11, 5011))
    assert held(before.range.application) is ahead, "it was connected anew"


def held(application: str) -> replication.Replication:
    """The connection of a pipeline's stream."""
    stream_here = streams_here.streams[application]
    assert isinstance(stream_here, stream.LogStream)
    assert stream_here._replication is not None
    return stream_here._replication
