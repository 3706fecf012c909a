"""Chunks of incremental snapshots where keys are awkward: not unique, nullable, altered, not in old images."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tailrace.config import Config
from tailrace.connectors.postgres.snapshot import chunks
from tests.behaviour.capture import capturing
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, drained, execute, keyed
from tests.behaviour.streams import eventually
from tests.conftest import Database

Meanwhile = Callable[..., None]


@pytest.fixture
def meanwhile(database: Database, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Has statements run once, when the first chunk has been read and its end is not yet known."""
    flushed = chunks.flushed

    def at_first_end(*statements: str) -> None:
        left = list(statements)

        def end(connection: psycopg.Connection, config: Config) -> int:
            while left:
                database.execute(left.pop(0))
            return flushed(connection, config)

        monkeypatch.setattr(chunks, "flushed", end)

    return at_first_end


def snapshot_of(database: Database, more: str = "", **properties: str) -> list[tuple[str, int]]:
    """What comes of a snapshot of table k, in chunks of three rows."""
    with capturing(database, **{**GIVEN, **properties}) as capture:
        capture.step()
        execute(database, "s1", more, table="public.k")
        return keyed(drained(capture))


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_new_row_beside_a_chunk_of_a_table_without_a_key(
    database: Database, meanwhile: Meanwhile, identity: str
) -> None:
    database.execute(SIGNALS, "CREATE TABLE k (id int, v int)", f"ALTER TABLE k REPLICA IDENTITY {identity}")
    database.execute("INSERT INTO k SELECT n, 0 FROM generate_series(1, 10) n")
    meanwhile("INSERT INTO k VALUES (100, 1)")
    found = snapshot_of(database, ', "surrogate-key": "id"')
    assert sorted(found) == sorted([("c", 100), *(("r", n) for n in range(1, 11))])


@pytest.mark.parametrize("change", ["DELETE FROM k WHERE id = 2", "UPDATE k SET id = 20 WHERE id = 2"])
def test_an_old_image_without_the_key_identifies_its_row(database: Database, meanwhile: Meanwhile, change: str) -> None:
    database.execute(SIGNALS, "CREATE TABLE k (id int PRIMARY KEY, code int NOT NULL UNIQUE)")
    database.execute("INSERT INTO k SELECT n, 100 + n FROM generate_series(1, 5) n")
    database.execute("ALTER TABLE k REPLICA IDENTITY USING INDEX k_code_key")
    meanwhile(change)
    assert ("r", 2) not in snapshot_of(database)


@pytest.mark.parametrize(
    ("change", "restarted"),
    [
        ("ALTER TABLE k ALTER id TYPE text", True),
        ("ALTER TABLE k DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (id, v)", True),
        ("ALTER TABLE k ADD more int", False),
    ],
)
def test_a_table_whose_key_changes_is_read_from_its_beginning(
    database: Database, change: str, restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(SIGNALS, "CREATE TABLE k (id int PRIMARY KEY, v int NOT NULL)")
    database.execute("INSERT INTO k SELECT n, 0 FROM generate_series(1, 10) n")
    with capturing(database, **GIVEN) as capture:
        capture.step()
        execute(database, "s1", table="public.k")
        assert len([row for row in capture.step() if row["op"] == "r"]) == 3
        database.execute(change)
        left = [int((row["after"])["id"]) for row in drained(capture)]
    assert sorted(left) == list(range(1 if restarted else 4, 11))
    assert ("public.k is read from its beginning" in caplog.text) == restarted


@pytest.mark.parametrize("surrogate", ["number", "word"])
def test_nulls_of_a_surrogate_key_are_read_last(database: Database, surrogate: str) -> None:
    database.execute(SIGNALS, "CREATE TABLE k (id int PRIMARY KEY, number int, word text)")
    database.execute(
        "INSERT INTO k SELECT n, CASE WHEN n > 4 THEN n END, CASE WHEN n > 4 THEN 'w' || n END "
        "FROM generate_series(1, 9) n"
    )
    assert snapshot_of(database, f', "surrogate-key": "{surrogate}"') == [("r", n) for n in (5, 6, 7, 8, 9, 1, 2, 3, 4)]


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
@pytest.mark.parametrize("how", ["surrogate", "message"])
def test_a_key_that_is_not_unique_loses_no_rows(database: Database, key: str, how: str) -> None:
    database.execute(SIGNALS, f"CREATE TABLE k (id int {key}, part int)")
    database.execute("INSERT INTO k SELECT n, n / 5 FROM generate_series(1, 10) n")
    surrogate, given = (
        (', "surrogate-key": "part"', {}) if how == "surrogate" else ("", {"message__key__columns": "public.k:part"})
    )
    assert sorted(snapshot_of(database, surrogate, **given)) == [("r", n) for n in range(1, 11)]


@pytest.mark.parametrize(
    "condition", ["k.id = 2", "public.k.id = 2", "id = 2 -- the second", "id = (SELECT min(o.id) + 1 FROM k o)"]
)
def test_a_condition_may_name_the_table(database: Database, condition: str) -> None:
    database.execute(SIGNALS, "CREATE TABLE k (id int PRIMARY KEY)", "INSERT INTO k VALUES (1), (2), (3)")
    assert snapshot_of(database, f', "additional-condition": "{condition}"') == [("r", 2)]


def until_commits_wait(database: Database) -> None:
    """Wait until the server waits for standbys: once its checkpointer has read the settings, as before a checkpoint."""

    def is_read() -> bool:
        with database.connect() as connection:
            connection.execute("SET synchronous_commit = local")
            return connection.execute("SHOW synchronous_standby_names").fetchone() == ("nobody",)

    eventually(is_read)
    database.execute("CHECKPOINT")


@pytest.mark.parametrize("read_only", ["true", "false"])
def test_no_chunk_is_read_while_a_change_in_the_log_is_not_visible_yet(
    database: Database, read_only: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A commit that waits for a synchronous standby is in the log, but nobody sees it yet."""
    database.execute(SIGNALS, *ROWS, f"ALTER DATABASE {database.name} SET synchronous_commit = local")

    def change() -> None:
        with database.connect() as connection:
            connection.execute("SET synchronous_commit = on")
            connection.execute("UPDATE t SET version = 1 WHERE id = 2")

    waiting = threading.Thread(target=change)
    with capturing(database, **{**GIVEN, "read__only": read_only}) as capture:
        capture.step()
        database.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
        try:
            until_commits_wait(database)
            waiting.start()
            rows: list[Any] = []
            while not rows:
                database.execute("SELECT pg_current_xact_id()")
                rows = capture.step()
            execute(database, "s1")
            rows += [row for _ in range(2) for row in capture.step() if row["table"] == "public.t"]
        finally:
            database.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        waiting.join()
        assert keyed(rows) == [("u", 2)]
        assert "wait for a synchronous standby" in caplog.text
        found = drained(capture)
    assert keyed(found) == [("r", n) for n in range(1, 11)]
    assert [row["after"]["version"] for row in found if row["after"]["id"] == 2] == [1]
