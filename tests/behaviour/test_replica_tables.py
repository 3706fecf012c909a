"""Replicas of PostgreSQL tables that come, go, move and change their storage without DDL triggers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.connectors.postgres.ddl.event_triggers import install_statements
from tests.behaviour.kept import Case, faults, keeping
from tests.conftest import Database

T = ("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
INTS = ("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
NEW = ("CREATE TABLE n (id int PRIMARY KEY, v text)", "INSERT INTO n VALUES (2, 'new'), (5, 'new')")
PARENT = ("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE kid (PRIMARY KEY (id), own int) INHERITS (t)")
ANOTHER, BEFORE = "another table has this name now", "it had another name before"
BETWEEN, ANEW = "it had another name in between", "its rows were rewritten"

CASES = [
    Case(["CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)"]),
    Case(
        ["CREATE TABLE t AS SELECT 1 AS id, 'x' AS v", "ALTER TABLE t ADD PRIMARY KEY (id)", "GRANT SELECT ON t TO cdc"]
    ),
    Case(["CREATE TABLE t (id int)", "ALTER TABLE t OWNER TO cdc", "INSERT INTO t VALUES (1)"]),
    Case(["CREATE TABLE t (id int)"]),
    Case(["BEGIN; CREATE TABLE t (id int); INSERT INTO t VALUES (1); COMMIT", "INSERT INTO t VALUES (2)"]),
    Case(["DROP TABLE t", *T[:1], "INSERT INTO t VALUES (3, 'c')"], ANOTHER, T),
    Case(["DROP TABLE t", "CREATE TABLE t (id text)"], ANOTHER, T),
    Case([*NEW, "DROP TABLE t", "ALTER TABLE n RENAME TO t", "INSERT INTO t VALUES (6, 'c')"], ANOTHER, T),
    Case(["DROP TABLE t"], "gone", T),
    Case(["ALTER TABLE t RENAME TO u"], "gone", T),
    Case(["ALTER TABLE t RENAME TO u"], BEFORE, T, "u"),
    Case(["ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (3)", "DELETE FROM u WHERE id = 1"], BEFORE, T, "u"),
    Case(["ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (3)", "ALTER TABLE u RENAME TO t"], BETWEEN, T),
    Case(["TRUNCATE t", "INSERT INTO t VALUES (3)"], None, T),
    Case([f"BEGIN; {'; '.join(NEW)}; ALTER TABLE n RENAME TO t; COMMIT"], BEFORE),
    Case(["ALTER TABLE t SET UNLOGGED", "INSERT INTO t VALUES (3)"], "it is unlogged", T),
    Case(["ALTER TABLE t SET UNLOGGED", "INSERT INTO t VALUES (3)", "ALTER TABLE t SET LOGGED"], ANEW, T),
    Case(["ALTER TABLE t SET UNLOGGED", "INSERT INTO t VALUES (3)", "ALTER TABLE t SET LOGGED"], ANEW, INTS),
    Case(["TRUNCATE t", "INSERT INTO t VALUES (3)"], None, INTS),
    Case(["CREATE UNLOGGED TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)"], "it is unlogged"),
    Case(["CREATE TEMP TABLE t (id int)", "INSERT INTO pg_temp.t VALUES (9)", "DROP TABLE pg_temp.t"], None, T),
    Case(
        ["INSERT INTO kid VALUES (3, 'k', 3)", "UPDATE t SET v = 'x'", "DELETE FROM t WHERE id = 2"],
        None,
        [*PARENT, "INSERT INTO t VALUES (1, 'p')", "INSERT INTO kid VALUES (2, 'k', 2)"],
        only=True,
    ),
    Case(
        ["ALTER TABLE n INHERIT t", "INSERT INTO n VALUES (9)", "ALTER TABLE n NO INHERIT t"],
        None,
        [*T, *NEW],
        only=True,
    ),
]


@pytest.fixture
def role(database: Database) -> None:
    """A role that owns tables."""
    database.execute("DO $$ BEGIN CREATE ROLE cdc; EXCEPTION WHEN duplicate_object THEN NULL; END $$")


@pytest.mark.usefixtures("role")
@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
def test_tables_that_come_and_go(database: Database, tmp_path: Path, is_stopped: bool) -> None:
    assert not faults(database, tmp_path, CASES, is_stopped=is_stopped)


LISTED = [
    Case([*NEW, "DROP TABLE t", "ALTER TABLE n RENAME TO t", "INSERT INTO t VALUES (6, 'c')"], ANOTHER, T),
    Case([*NEW, "ALTER TABLE n RENAME TO t", "INSERT INTO t VALUES (6, 'c')"], BEFORE),
    Case(["ALTER TABLE n RENAME TO t"], BEFORE, NEW),
    Case(["ALTER TABLE t RENAME TO n", "INSERT INTO n VALUES (3)", "ALTER TABLE n RENAME TO t"], BETWEEN, T),
    Case(["ALTER TABLE t RENAME TO n", "INSERT INTO n VALUES (3)"], "gone", T),
    Case([f"BEGIN; {'; '.join(NEW)}; ALTER TABLE n RENAME TO t; COMMIT", "INSERT INTO t VALUES (6)"], BEFORE),
]
MOVED = [
    Case(["ALTER TABLE hidden.a SET SCHEMA case_0", "INSERT INTO a VALUES (3)"], BEFORE, table="a"),
    Case(
        ["ALTER TABLE b SET SCHEMA hidden", "INSERT INTO hidden.b VALUES (3)"],
        "gone",
        [T[0].replace(" t ", " b ")],
        "b",
    ),
    Case(
        [
            "ALTER TABLE c SET SCHEMA hidden",
            "INSERT INTO hidden.c VALUES (3)",
            "ALTER TABLE hidden.c SET SCHEMA case_2",
        ],
        BETWEEN,
        [T[0].replace(" t ", " c ")],
        "c",
    ),
]


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
def test_tables_that_come_into_the_lists_and_leave_them(database: Database, tmp_path: Path, is_stopped: bool) -> None:
    """Changes of the table n are not captured."""
    assert not faults(database, tmp_path, LISTED, is_stopped=is_stopped, table__include__list=r".*\.t")


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
def test_tables_that_come_into_the_schemas_and_leave_them(database: Database, tmp_path: Path, is_stopped: bool) -> None:
    database.execute("CREATE SCHEMA hidden", "CREATE TABLE hidden.a (id int)", "INSERT INTO hidden.a VALUES (1)")
    assert not faults(database, tmp_path, MOVED, is_stopped=is_stopped, schema__exclude__list="hidden")


def test_lists_that_are_widened_and_narrowed_between_runs(database: Database, tmp_path: Path) -> None:
    made = [
        statement for name in "abc" for statement in (f"CREATE TABLE {name} (id int)", f"INSERT INTO {name} VALUES (1)")
    ]
    with keeping(database, tmp_path, *made, table__include__list=r"public\.a") as kept:
        database.execute("INSERT INTO b VALUES (2)", "CREATE TABLE d (id int)", "INSERT INTO d VALUES (1)")
        kept.follow()
        kept.stop()
        database.execute("CREATE TABLE e (id int)", "INSERT INTO e VALUES (1)", "INSERT INTO b VALUES (3)")
        kept.restart(table__include__list=r"public\.[abde]")
        kept.follow()
        said = "it was not captured when its rows were written"
        assert [kept.why(name) for name in "abde"] == [None, said, said, None]
        assert kept.is_same("a")
        assert kept.is_same("e")
        kept.restart(table__include__list=r"public\.[bd]")
        database.execute("INSERT INTO a VALUES (4)")
        kept.follow()
        assert kept.why("a") == "gone"
        kept.restart(table__include__list=r"public\.[abd]")
        kept.follow()
        assert kept.why("a") == "it was not captured for a while"
        kept.restart()
        kept.follow()
        assert kept.why("e") == "gone"


def test_columns_that_are_captured_again(database: Database, tmp_path: Path) -> None:
    with keeping(database, tmp_path, *T, column__exclude__list=r"public\.t\.v") as kept:
        assert kept.rows("t") == [{"id": 1}, {"id": 2}]
        database.execute("ALTER TABLE t ADD n int DEFAULT 5")
        kept.restart(column__exclude__list=r"public\.t\.n")
        kept.follow()
        assert kept.why("t") == "the column v was not captured before"
        kept.restart(column__exclude__list=r"public\.t\.v")
        kept.follow()
        assert all("v" not in row for row in kept.rows("t"))


def test_what_a_publication_leaves_out_for_a_while(database: Database, tmp_path: Path) -> None:
    name = f"publication_{database.name}"
    made = (*T, "CREATE TABLE u (id int PRIMARY KEY)", f"CREATE PUBLICATION {name} FOR TABLE t, u")
    with keeping(database, tmp_path, *made, publication__autocreate__mode="disabled") as kept:

        def done(*statements: str) -> tuple[str | None, str | None]:
            of_rows = ("INSERT", "DELETE FROM")
            altered = [each if each.startswith(of_rows) else f"ALTER PUBLICATION {name} {each}" for each in statements]
            database.execute(*altered)
            kept.follow()
            return kept.why("t"), kept.why("u")

        assert done("INSERT INTO t VALUES (3)") == (None, None)
        taken = f"it was taken out of the publication {name} for a while, or is there with other conditions"
        assert done("DROP TABLE t", "INSERT INTO t VALUES (4)", "ADD TABLE t") == (taken, None)
        altered = f"the publication {name} was altered, and altered back"
        back = "SET (publish = 'insert, update, delete, truncate')"
        assert done("SET (publish = 'insert')", "DELETE FROM u", back) == (f"{taken}; {altered}", altered)
        assert done("SET (publish_via_partition_root = true)") == (f"{taken}; {altered}", altered)


@pytest.mark.parametrize(
    ("narrowed", "why", "widened"),
    [
        ("DROP TABLE t", "does not contain it", "ADD TABLE t"),
        ("SET TABLE t WHERE (id > 1), u", "sends only rows that fulfil its condition", "SET TABLE t, u"),
        ("SET TABLE t (id), u", "sends only some of its columns", "SET TABLE t, u"),
    ],
)
def test_what_a_publication_leaves_out_keeps_a_table_incomplete(
    database: Database, tmp_path: Path, narrowed: str, why: str, widened: str
) -> None:
    name = f"publication_{database.name}"
    made = (*T, "CREATE TABLE u (id int PRIMARY KEY)", f"CREATE PUBLICATION {name} FOR TABLE t, u")
    with keeping(database, tmp_path, *made, publication__autocreate__mode="disabled") as kept:
        database.execute(f"ALTER PUBLICATION {name} {narrowed}")
        kept.follow()
        assert why in str(kept.why("t"))
        assert kept.states.tables["public.t"].lasting
        assert kept.why("u") is None
        kept.restart()
        kept.follow()
        assert kept.states.tables["public.t"].lasting
        database.execute(f"ALTER PUBLICATION {name} {widened}")
        kept.follow()
        assert not kept.states.tables["public.t"].lasting
        assert kept.why("t") is not None
        assert kept.why("u") is None


REPORTED = [
    Case(["ALTER TABLE t RENAME v TO w", "INSERT INTO t VALUES (3, 'c')"], None, T),
    Case(["ALTER TABLE t DROP v, ADD v text DEFAULT 'new'", "INSERT INTO t VALUES (3)"], None, T),
    Case(["ALTER TABLE t DROP v, ADD v int", "INSERT INTO t VALUES (3, 3)"], None, T),
    Case(["ALTER TABLE t RENAME v TO w", "ALTER TABLE t ADD v text", "UPDATE t SET v = 'x' WHERE id = 1"], None, T),
    Case(["ALTER TABLE t ADD c int DEFAULT 5", "INSERT INTO t VALUES (3)", "ALTER TABLE t DROP c"], None, T),
    Case(["ALTER TABLE t ADD c int", "UPDATE t SET c = 4", "ALTER TABLE t DROP c", "ALTER TABLE t ADD c int"], None, T),
    Case(["ALTER TABLE t ADD c int DEFAULT 5", "ALTER TABLE t ALTER c DROP DEFAULT"], None, T),
    Case(["DROP TABLE t", *T[:1], "INSERT INTO t VALUES (3, 'c')"], None, T),
    Case(["DROP TABLE t", "CREATE TABLE t (id text)"], None, T),
    Case([*NEW, "DROP TABLE t", "ALTER TABLE n RENAME TO t", "INSERT INTO t VALUES (6, 'c')"], None, T),
    Case(["DROP TABLE t"], "gone", T),
    Case(["ALTER TABLE t RENAME TO u"], "gone", T),
    Case(["ALTER TABLE t RENAME TO u"], None, T, "u"),
    Case(["ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (3)", "DELETE FROM u WHERE id = 1"], None, T, "u"),
    Case([f"BEGIN; {'; '.join(NEW)}; ALTER TABLE n RENAME TO t; COMMIT"]),
    Case(["ALTER TABLE t SET UNLOGGED", "INSERT INTO t VALUES (3)", "ALTER TABLE t SET LOGGED"], ANEW, T),
    Case(["ALTER TABLE t ADD c serial"], "the table rewritten", T),
    Case(["TRUNCATE t", "INSERT INTO t VALUES (3)"], None, T),
]


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
def test_what_ddl_triggers_report_is_followed(database: Database, tmp_path: Path, is_stopped: bool) -> None:
    database.execute(install_statements())
    assert not faults(database, tmp_path, REPORTED, is_stopped=is_stopped)


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
def test_ddl_triggers_do_not_know_rows_from_before_a_table_was_captured(
    database: Database, tmp_path: Path, is_stopped: bool
) -> None:
    database.execute(install_statements())
    cases = [case if case.why == "gone" else replace(case, why=" before") for case in LISTED]
    assert not faults(database, tmp_path, cases, is_stopped=is_stopped, table__include__list=r".*\.t")


def test_what_disabled_ddl_triggers_do_not_report_is_noticed(database: Database, tmp_path: Path) -> None:
    database.execute(install_statements())
    with keeping(database, tmp_path, *T, "CREATE TABLE u (id int, v int)", "INSERT INTO u VALUES (1, 2)") as kept:
        database.execute(
            "ALTER EVENT TRIGGER tailrace_ddl_end DISABLE",
            "ALTER TABLE t RENAME v TO w",
            "INSERT INTO t VALUES (3, 'c')",
            "ALTER EVENT TRIGGER tailrace_ddl_end ENABLE",
            "ALTER TABLE u RENAME v TO w",
            "INSERT INTO u VALUES (3, 4)",
        )
        kept.follow()
        assert kept.why("t") == "the column v was renamed to w"
        assert kept.why("u") is None
        assert kept.is_same("u")
