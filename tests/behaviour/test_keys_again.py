"""Snapshots of single keys: existing rows are sent as reads, keys without a row as deletes."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, drained, execute
from tests.conftest import Database

Key = tuple[str, ...]


@pytest.fixture
def table(database: Database) -> Database:
    """A table of ten rows and one for signals."""
    database.execute(SIGNALS, *ROWS)
    return database


@pytest.fixture
def capture(table: Database) -> Iterator[Capture]:
    """A pipeline that streams."""
    with capturing(table, **GIVEN) as capture:
        capture.step()
        yield capture


def ask(database: Database, keys: Any, id_: str = "s1") -> None:
    """Send the signal."""
    execute(database, id_, f', "keys": {json.dumps(keys)}')


def test_rows_are_sent_as_reads_and_keys_without_a_row_as_deletes(table: Database, capture: Capture) -> None:
    ask(table, [["3"], ["11"], ["7"]])
    rows = drained(capture)
    assert sorted((row["op"], (row["after"] or row["before"])["id"]) for row in rows) == [("d", 11), ("r", 3), ("r", 7)]
    assert {row["snapshot"] for row in rows} == {"incremental"}
    assert [row["before"] for row in rows if row["op"] == "d"] == [{"id": 11, "version": None, "note": None}]
    assert capture.offset["snapshots"]["queue"] == []


def test_a_crash_before_the_commit_reads_them_again(table: Database, capture: Capture) -> None:
    ask(table, [["3"], ["11"]])
    start = capture.offset
    capture.plan()
    after = capture.offset
    capture.close()
    with capturing(table, **GIVEN) as restarted:
        # Planned again the batch is the log alone; the next one reads the keys.
        restarted.offset = start
        list(restarted.reader.plan(start, after))
        restarted.offset = after
        assert sorted(row["op"] for row in drained(restarted)) == ["d", "r"]


@pytest.mark.parametrize("keys", ["3", [["3", "4"]], [3], ["3"], [["no number"]]])
def test_an_invalid_key_is_logged_and_ignored(
    table: Database, capture: Capture, caplog: pytest.LogCaptureFixture, keys: Any
) -> None:
    ask(table, keys)
    assert drained(capture) == []
    assert "is ignored" in caplog.text or "is given up" in caplog.text
    ask(table, [["1"]], "s2")
    assert [row["op"] for row in drained(capture)] == ["r"]


def test_no_key_steps_back_under_traffic(table: Database, capture: Capture) -> None:
    ended = threading.Event()

    def change() -> None:
        chance = random.Random(1)
        with table.connect() as connection:
            while not ended.is_set():
                id_ = chance.randrange(1, 6)
                if chance.random() < 0.5:
                    connection.execute("DELETE FROM t WHERE id = %s", [id_])
                else:
                    connection.execute(
                        "INSERT INTO t VALUES (%s, nextval('versions')) ON CONFLICT (id) DO UPDATE "
                        "SET version = excluded.version",
                        [id_],
                    )
                time.sleep(chance.random() / 50)

    table.execute("CREATE SEQUENCE versions")
    threads = [threading.Thread(target=change) for _ in range(3)]
    for thread in threads:
        thread.start()
    replica: dict[int, int] = dict.fromkeys(range(1, 11), 0)
    kinds: set[str] = set()
    try:
        deadline = time.monotonic() + 120
        for number in count():
            # Until both kinds have come, on a machine on which the writers get few turns.
            if number >= 30 and {"r", "incremental d"} <= kinds:
                break
            assert time.monotonic() < deadline, kinds
            ask(table, [[str(n)] for n in range(1, 6)], f"s{number}")
            kinds |= apply(replica, capture.step())
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    apply(replica, drained(capture))
    with table.connect() as connection:
        assert replica == dict(connection.execute("SELECT id, version FROM t").fetchall())


def apply(replica: dict[int, int], rows: list[dict[str, Any]]) -> set[str]:
    """Bring rows into a replica; which kinds there were of the chunks."""
    kinds = set()
    for row in rows:
        if row["table"] != "public.t":
            continue
        if row["op"] == "d":
            assert row["snapshot"] or row["before"]["id"] in replica
            replica.pop(row["before"]["id"], None)
            kinds.add("incremental d" if row["snapshot"] else "d")
        else:
            # A chunk's row is what the log has told, or what no log tells.
            if row["snapshot"] == "incremental":
                kinds.add("r")
                assert replica.get(row["after"]["id"]) == row["after"]["version"]
            replica[row["after"]["id"]] = row["after"]["version"]
    return kinds
