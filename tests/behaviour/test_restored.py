"""A server restored from a copy of its files, on the same timeline, that has grown beyond the checkpoint since."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.connectors.postgres.admin.checks import check
from tailrace.connectors.postgres.position import format_lsn
from tailrace.errors import OffsetError
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.capture import Capture, capturing, reader
from tests.behaviour.test_gaps import confirmed, copied, restart
from tests.behaviour.test_modes import read
from tests.conftest import Database

ANOTHER = "the server's log is not the one that was read"


@pytest.fixture
def database() -> Iterator[Database]:
    """A server of one's own, with two tables of which one is published."""
    with EmbeddedPostgres() as server:
        database = Database(server, "postgres")
        database.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE other (v text)")
        database.execute("CREATE PUBLICATION publication_postgres FOR TABLE t")
        yield database


def insert(database: Database, *ids: int) -> None:
    for number in ids:
        database.execute(f"INSERT INTO t VALUES ({number})")


def streaming(capture: Capture) -> None:
    """Read rows 1 to 3, the last two from the log in a stretch each."""
    insert(capture.database, 1)
    assert read(capture) == [("r", 1)]
    for number in (2, 3):
        insert(capture.database, number)
        assert read(capture) == [("c", number)]


def fill(database: Database, capture: Capture) -> None:
    """Write other things until the log is well beyond the checkpoint."""
    database.execute(*["INSERT INTO other VALUES (repeat('x', 5000))"] * 500)
    with database.connect() as connection:
        query = "SELECT pg_current_wal_flush_lsn() > %s::pg_lsn"
        assert connection.execute(query, [capture.offset["position"]]).fetchone() == (True,)


@contextmanager
def restored(backup: Path, capture: Capture) -> Iterator[Capture]:
    """The same pipeline on the server that was made of a copy."""
    capture.close()
    with EmbeddedPostgres(data_dir=backup) as server:
        given = {name: value for name, value in capture.config.given.items() if not name.startswith("database.")}
        there = Capture(Database(server, "postgres"), given)
        there.offset = capture.offset
        try:
            yield there
        finally:
            there.close()


def test_what_was_written_instead_is_not_passed_over(database: Database) -> None:
    """Not by `check`, not by a reader whose batch was planned before, not by a planner."""
    with capturing(database, table__include__list="public.t") as capture:
        streaming(capture)
        backup = copied(database.server)  # type: ignore[arg-type]
        insert(database, 4)
        assert read(capture) == [("c", 4)]
        with restored(backup, capture) as there:
            insert(there.database, 40, 50)
            fill(there.database, capture)
            (found,) = [one for one in check(there.config, (there.offset, there.offset)) if one.name == "slot"]
            assert found.ok is False
            assert ANOTHER in found.what
            end = {**there.offset, "position": format_lsn(there.reader.horizon(there.offset))}
            (split,) = there.reader.plan(there.offset, end)
            with pytest.raises(OffsetError, match=ANOTHER):
                list(there.reader.read(split))
            with pytest.raises(OffsetError) as caught:
                read(there)
            assert f"{ANOTHER}: it was written again from 20" in caught.value.what
            assert "restored from a backup" in str(caught.value.remedy)
            again = Capture(there.database, {**there.config.given, "snapshot.mode": "when_needed"})
            again.offset = there.offset
            there.close()
            assert sorted(read(again)) == [("r", 1), ("r", 2), ("r", 3), ("r", 40), ("r", 50)]
            again.close()


def test_a_copy_of_right_after_the_snapshot(database: Database) -> None:
    """The slot is where it was created, before and after the first stretch of the log."""
    with capturing(database) as capture:
        insert(database, 1)
        assert read(capture) == [("r", 1)]
        backup = copied(database.server)  # type: ignore[arg-type]
        insert(database, 2)
        assert read(capture) == [("c", 2)]
        with restored(backup, capture) as there:
            insert(there.database, 20)
            fill(there.database, capture)
            with pytest.raises(OffsetError, match=ANOTHER):
                read(there)


def test_what_was_read_and_never_happened_there(database: Database) -> None:
    """Nothing captured was written instead."""
    with capturing(database) as capture:
        streaming(capture)
        backup = copied(database.server)  # type: ignore[arg-type]
        # More than a page of log: of a slot on the border of a page it is not certain which commits it sends.
        database.execute("INSERT INTO other SELECT string_agg(md5(n::text), '') FROM generate_series(1, 1000) n")
        for number in (4, 5):
            insert(database, number)
            assert read(capture) == [("c", number)]
        with restored(backup, capture) as there:
            fill(there.database, capture)
            with pytest.raises(OffsetError, match=f"{ANOTHER}: the last transaction that was read, .* is not in it"):
                read(there)


def test_a_crash_of_the_server_is_no_restore(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """It forgets confirmations, and what was read is still there."""
    caplog.set_level("INFO", "tailrace.connectors.postgres.server.history")
    with capturing(database) as capture:
        streaming(capture)
        database.execute("CHECKPOINT")
        for number in (4, 5, 6):
            insert(database, number)
            assert read(capture) == [("c", number)]
        capture.close()
        before = confirmed(database)
        insert(database, 7)
        database.server.restart("immediate")  # type: ignore[attr-defined]
        assert confirmed(database) < before  # type: ignore[operator]
        restart(capture)
        insert(database, 8)
        assert read(capture) == [("c", 7), ("c", 8)]
        assert "the log between is compared" in caplog.text
        caplog.clear()
        insert(database, 9)
        assert read(capture) == [("c", 9)]
        restart(capture)
        insert(database, 10)
        assert read(capture) == [("c", 10)]
        assert "the log between is compared" not in caplog.text, "an ordinary restart compares nothing"


@pytest.mark.parametrize("stretches", [0, 1])
def test_a_restart_soon_after_the_snapshot(database: Database, stretches: int) -> None:
    with capturing(database) as capture:
        insert(database, 1)
        assert read(capture) == [("r", 1)]
        for number in range(stretches):
            insert(database, 2 + number)
            assert read(capture) == [("c", 2 + number)]
        capture.close()
        capture.reader = reader(capture.config)
        insert(database, 9)
        assert read(capture) == [("c", 9)]


def test_it_is_not_known_of_offsets_of_version_1(database: Database) -> None:
    with capturing(database) as capture:
        streaming(capture)
        del capture.offset["log"]["server"]
        restart(capture)
        insert(database, 4)
        assert read(capture) == [("c", 4)]
        assert "server" in capture.offset["log"]
