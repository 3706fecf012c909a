"""Code of one's own, where Debezium loads Java classes: snapshotters, locks, queries and converters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.config import entrypoints
from tailrace.connectors.postgres.config import resolve
from tailrace.errors import ConfigError, DecodeError
from tests.behaviour.capture import capturing
from tests.behaviour.test_modes import again, read
from tests.conftest import Database
from tests.own_code import own_code

__all__ = ["own_code"]

TABLES = ("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)", "CREATE TABLE u (id int)")


@pytest.fixture
def tables(database: Database) -> Database:
    """A database with two tables."""
    database.execute(*TABLES)
    return database


def locks(database: Database) -> set[tuple[str, str]]:
    """Tables and modes that the snapshot's own connection has locked."""
    with database.connect() as connection:
        rows = connection.execute(
            "SELECT l.relation::regclass::text, l.mode FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE a.application_name = 'tailrace snapshot locks' AND l.relation IS NOT NULL AND a.datname = %s",
            [database.name],
        ).fetchall()
    return {(name, mode) for name, mode in rows if name in ("t", "u")}


@pytest.mark.parametrize(
    ("letters", "first", "then", "after_restart"),
    [
        ("fs", ["r"] * 3, ["c"], []),
        ("as", [], ["c"], ["r"] * 4),
        ("f", ["r"] * 3, [], []),
    ],
)
def test_a_snapshotter_decides_what_is_read(
    own_code: Path, tables: Database, letters: str, first: list[str], then: list[str], after_restart: list[str]
) -> None:
    mode = {"snapshot__mode": "custom", "snapshot__mode__custom__name": "flags", "snapshot__new__tables": letters}
    with capturing(tables, **mode) as capture:
        assert [op for op, _ in read(capture)] == first
        tables.execute("INSERT INTO t VALUES (4)")
        assert [op for op, _ in read(capture)] == then
        second = again(capture)
        assert [op for op, _ in read(second)] == after_restart
        second.close()


def test_a_snapshotter_may_read_the_tables_again_where_the_position_is_lost(own_code: Path, tables: Database) -> None:
    mode = {"snapshot__mode": "custom", "snapshot__mode__custom__name": "flags", "snapshot__new__tables": "fse"}
    with capturing(tables, **mode) as capture:
        read(capture)
        tables.execute("INSERT INTO t VALUES (4)")
        assert read(capture) == [("c", 4)]
        capture.forget_streams()
        tables.execute(f"SELECT pg_drop_replication_slot('slot_{tables.name}')")
        second = again(capture)
        assert len(read(second)) == 4
        second.close()


def test_a_user_supplied_lock(own_code: Path, tables: Database) -> None:
    mode = {"snapshot__locking__mode": "custom", "snapshot__locking__mode__custom__name": "share"}
    with capturing(tables, **mode) as capture:
        capture.plan()
        assert locks(tables) == {("t", "ShareLock")}


def test_a_user_supplied_query(own_code: Path, tables: Database) -> None:
    mode = {"snapshot__query__mode": "custom", "snapshot__query__mode__custom__name": "latest"}
    tables.execute("INSERT INTO u VALUES (9)")
    with capturing(tables, **mode) as capture:
        assert read(capture) == [("r", 3), ("r", 2)]


CONVERTER = {
    "converters": "books",
    "books__type": "isbn",
    "books__table": "public.b",
    "books__schema__name": "io.example.Isbn",
}


def test_a_converter_gives_schema_and_values_in_snapshot_and_stream(own_code: Path, database: Database) -> None:
    database.execute(
        "CREATE TABLE b (id int PRIMARY KEY, isbn varchar(20) NOT NULL DEFAULT '0-0', title varchar(20))",
        "INSERT INTO b VALUES (1, '978-3', 'a-b')",
    )
    with capturing(database, **CONVERTER) as capture:
        rows = capture.step()
        database.execute("INSERT INTO b VALUES (2, '979-0-1', 'c-d')", "UPDATE b SET title = NULL WHERE id = 1")
        rows += capture.step()
    assert [(row["after"]["isbn"], row["after"]["title"]) for row in rows] == [
        ("9783", "a-b"),
        ("97901", "c-d"),
        ("9783", None),
    ]
    for row in rows:
        schema = row["schema"].column("isbn").schema
        assert (schema.name, schema.optional, schema.default) == ("io.example.Isbn", False, "00")
        assert schema.parameters == (("length", "20"),)
        assert row["schema"].column("title").schema.name is None


def test_rows_that_are_left_out_make_a_replicas_table_incomplete(own_code: Path, database: Database) -> None:
    """Of a snapshot, and of the log: alone, and among rows of a table of the same columns."""
    database.execute("CREATE TABLE b (id int PRIMARY KEY, isbn varchar(20))", "CREATE TABLE c (LIKE b INCLUDING ALL)")
    database.execute("INSERT INTO b VALUES (1, 'bad'), (2, '1-2'), (3, 'bad')", "INSERT INTO c VALUES (1, 'bad')")
    with capturing(database, **CONVERTER, event__processing__failure__handling__mode="warn") as capture:

        def stepped() -> tuple[list[int], dict[str, tuple[bool, str]]]:
            """The keys of the rows of `b`, and by table whether what is lacking is of a snapshot, and what it is."""
            chunks = [chunk for split in capture.plan() for chunk in capture.reader.read(split)]
            batches = [batch for chunk in chunks for batch in chunk.batches]
            keys = [
                row["after"]["id"] for each in batches if each.table.id.table == "b" for row in each.rows.to_pylist()
            ]
            told = {str(each.table.id): (each.read is not None, each.lacking) for each in batches if each.lacking}
            assert all(each.is_note and not each.is_empty_table for each in batches if each.lacking)
            return keys, told

        why = "was left out: a value of isbn cannot be read: converter books: KeyError: 'no ISBN'"
        keys, told = stepped()
        assert keys == [2]
        assert [*told] == ["public.b"]
        assert told["public.b"][0]
        assert told["public.b"][1].startswith("a change of public.b, snapshot row 0 was left out: ")
        assert told["public.b"][1].endswith("KeyError: 'no ISBN', and 1 more")
        database.execute(
            "INSERT INTO b VALUES (4, 'bad')", "INSERT INTO c VALUES (4, 'bad')", "INSERT INTO b VALUES (5, '')"
        )
        keys, told = stepped()
        assert keys == [5]
        assert [*told] == ["public.b"]
        assert not told["public.b"][0]
        assert " at 0/" in told["public.b"][1], why


def test_a_converters_faults_name_it(own_code: Path, database: Database) -> None:
    database.execute("CREATE TABLE b (id int PRIMARY KEY, isbn varchar(20))", "INSERT INTO b VALUES (1, 'bad')")
    # Each is a pipeline without a checkpoint to prove that the slot is its own.
    given = {**CONVERTER, "slot__takeover": "true"}
    with capturing(database, **given) as capture, pytest.raises(DecodeError, match="converter books: KeyError"):
        capture.step()
    database.execute("ALTER TABLE b RENAME isbn TO short", "UPDATE b SET short = 'good'")
    with capturing(database, **given) as capture, pytest.raises(DecodeError, match="string of 1 values, not int32"):
        capture.step()
    database.execute("ALTER TABLE b RENAME short TO odd")
    with capturing(database, **given) as capture, pytest.raises(ConfigError, match=r"gave str for column public.b"):
        capture.step()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"snapshot.mode": "custom"}, "snapshot.mode.custom.name: A value is required"),
        ({"snapshot.locking.mode": "custom"}, "snapshot.locking.mode.custom.name: A value is required"),
        ({"snapshot.query.mode": "custom"}, "snapshot.query.mode.custom.name: A value is required"),
        (
            {"snapshot.mode": "custom", "snapshot.mode.custom.name": "com.example.Mine"},
            "no Python entry point 'com.example.Mine' in the group tailrace.snapshotters (there: ",
        ),
        ({"converters": "x"}, "x.type: A value is required"),
        ({"converters": "x", "x.type": "com.example.Isbn"}, "Java classes cannot be loaded"),
        ({"converters": "x", "x.type": "broken"}, "ownership:missing cannot be loaded"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(own_code: Path, given: dict[str, str], message: str) -> None:
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}
    with pytest.raises(ConfigError) as caught:
        resolve({**base, **given})
    assert message in str(caught.value)


def test_settings_of_a_converter_are_known_properties(own_code: Path) -> None:
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}
    config = resolve({**base, **{name.replace("__", "."): value for name, value in CONVERTER.items()}})
    assert config.warnings == ()
    assert [name for name, _ in entrypoints.converters(config)] == ["books"]
