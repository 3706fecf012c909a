"""Replicas of PostgreSQL tables whose columns are added, renamed, dropped or retyped without DDL triggers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.behaviour.kept import Case, Kept, faults, keeping
from tests.conftest import Database

T = ("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")


def done(kept: Kept, *statements: str) -> str | None:
    """Run statements, and let the replica follow; why it may differ then."""
    kept.database.execute(*statements)
    kept.follow()
    return kept.why("t")


@pytest.mark.parametrize("looks", ["often", "at the end"])
def test_a_column_with_a_default_has_its_value_in_older_rows(database: Database, tmp_path: Path, looks: str) -> None:
    statements = (
        "ALTER TABLE t ADD good int DEFAULT 5",
        "INSERT INTO t VALUES (3, 'c')",
        "ALTER TABLE t ADD lost text DEFAULT 'x'",
        "ALTER TABLE t ALTER lost DROP DEFAULT",
        "ALTER TABLE t ADD nothing int",
        "ALTER TABLE t ALTER nothing SET DEFAULT 7",
        "INSERT INTO t VALUES (4, 'd')",
        "UPDATE t SET v = 'bb' WHERE id = 2",
        "ALTER TABLE t ADD last date DEFAULT '2024-05-06' NOT NULL",
        "VACUUM FULL t" if looks == "often" else "VACUUM t",
    )
    with keeping(database, tmp_path, *T) as kept:
        for part in [[each] for each in statements] if looks == "often" else [statements]:
            assert done(kept, *part) is None
        assert kept.is_same("t")
        assert [row["lost"] for row in kept.rows("t")] == ["x", "x", "x", None]


VALUES = {
    "int[]": "{1,2}",
    "text[]": '{"x\\"y","a,b",NULL}',
    "int[][]": "{{1,2},{3,4}}",
    "five": "5",
    "mood": "b c",
    "mood[]": "{a}",
    "pair": '(1,"a b")',
    "timestamptz": "2024-01-01 12:30:00.123456+02",
    "timestamp(3)": "2024-01-01 12:30:00.123",
    "time": "24:00",
    "timetz": "12:30+02",
    "interval": "1 mon 2 days 03:04:05",
    "text": 'it\'s {a} "b" \\ c',
    "char(5)": "ab",
    "bytea": "\\x00ff",
    "jsonb": '{"a": [1, null]}',
    "numeric(10,2)": "1.5",
    "numeric": "12345678901234567890.123",
    "float8": "NaN",
    "real": "1e-7",
    "money": "12.50",
    "boolean": "t",
    "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "bit(3)": "101",
    "inet": "10.0.0.1/8",
    "int4range": "[1,5)",
    "point": "(1,2)",
    "tsvector": "'a':1",
    "varchar(3)": "",
    "oid": "4294967295",
    '"char"': "x",
}


def test_the_missing_value_of_every_type(database: Database, tmp_path: Path) -> None:
    """The rows of `t` have the values as missing ones, those of `u` from the log."""
    names = {kind: f"c{place}" for place, kind in enumerate(VALUES)}
    quoted = {kind: "'" + value.replace("'", "''") + "'" for kind, value in VALUES.items()}
    types = (
        "CREATE DOMAIN five AS int DEFAULT 5",
        "CREATE TYPE mood AS ENUM ('a', 'b c')",
        "CREATE TYPE pair AS (a int, b text)",
    )
    columns = ", ".join(f"{names[kind]} {kind}" for kind in VALUES)
    added = [f"ADD {names[kind]} {kind}" + ("" if kind == "five" else f" DEFAULT {quoted[kind]}") for kind in VALUES]
    with keeping(database, tmp_path, *types, *T, f"CREATE TABLE u (id int PRIMARY KEY, v text, {columns})") as kept:
        assert done(kept, f"INSERT INTO u VALUES (1, 'a', {', '.join(quoted.values())})") is None
        assert done(kept, f"ALTER TABLE t {', '.join(added)}") is None
        first, second = kept.rows("t")
        assert repr(first) == repr(kept.rows("u")[0])
        assert first["c0"] == [1, 2]
        assert repr({**second, "id": 1, "v": "a"}) == repr(first)


UNKNOWN = [
    ["ALTER TABLE t ADD c float DEFAULT random()"],
    ["ALTER TABLE t ADD c serial"],
    ["ALTER TABLE t ADD c int GENERATED ALWAYS AS IDENTITY"],
    ["ALTER TABLE t ADD c int GENERATED ALWAYS AS (id * 2) STORED"],
    ["ALTER TABLE t ADD c int GENERATED ALWAYS AS (id * 2) VIRTUAL"],
    ["ALTER TABLE t ADD c int DEFAULT 5", "VACUUM FULL t"],
    ["ALTER TABLE t ADD c int DEFAULT 5", "VACUUM FULL t", "ALTER TABLE t ALTER c DROP DEFAULT"],
    ["ALTER TABLE t ADD c int DEFAULT 5", "CLUSTER t USING t_pkey", "INSERT INTO t VALUES (3, 'c')"],
    ["ALTER TABLE t ADD c int DEFAULT 5", "ALTER TABLE t ALTER id TYPE bigint"],
    ["ALTER TABLE t ADD c int DEFAULT 1", "INSERT INTO t VALUES (3)", "ALTER TABLE t DROP c, ADD c int DEFAULT 2"],
    ["ALTER TABLE t RENAME v TO w", "INSERT INTO t VALUES (3, 'c')"],
    ["ALTER TABLE t DROP v, ADD v text DEFAULT 'new'"],
    ["ALTER TABLE t DROP v, ADD v int", "INSERT INTO t VALUES (3, 3)"],
    ["ALTER TABLE t RENAME v TO w", "ALTER TABLE t ADD v text", "UPDATE t SET v = 'x' WHERE id = 1"],
    ["ALTER TABLE t ALTER id TYPE bigint USING id * 10"],
    ["ALTER TABLE t ALTER v TYPE text USING v || 'y'", "INSERT INTO t VALUES (3, 'c')"],
]


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["running", "stopped"])
def test_values_that_nobody_knows_make_a_table_incomplete(database: Database, tmp_path: Path, is_stopped: bool) -> None:
    cases = [Case(statements, "", T) for statements in UNKNOWN]
    assert not faults(database, tmp_path, cases, is_stopped=is_stopped)


def test_a_replica_without_rows_has_no_values_to_be_wrong(database: Database, tmp_path: Path) -> None:
    statements = [each for each in UNKNOWN if not any(one.startswith("INSERT") for one in each)]
    assert not faults(database, tmp_path, [Case(each, None, T[:1]) for each in statements])


def test_renamed_and_dropped_columns_are_followed_before_a_row_comes(database: Database, tmp_path: Path) -> None:
    with keeping(database, tmp_path, *T) as kept:
        assert done(kept, "ALTER TABLE t RENAME v TO w") is None
        assert kept.rows("t") == [{"id": 1, "w": "a"}, {"id": 2, "w": "b"}]
        assert done(kept, "ALTER TABLE t ADD x int DEFAULT 3", "ALTER TABLE t ADD y int") is None
        assert done(kept, "ALTER TABLE t DROP w", "INSERT INTO t VALUES (3, 4)") is None
        assert kept.is_same("t")
        assert "w" not in kept.rows("t")[0]
        # Added and dropped between two looks, while rows came.
        assert done(kept, "ALTER TABLE t ADD z int", "UPDATE t SET z = 1", "ALTER TABLE t DROP z") is None
        assert kept.is_same("t")
        assert "z" not in kept.rows("t")[0]


def test_a_renamed_label_of_an_enum(database: Database, tmp_path: Path) -> None:
    mood = ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN moody AS mood")
    tables = ("CREATE TABLE t (id int PRIMARY KEY, m moody, l mood[])", "INSERT INTO t VALUES (1, 'sad', '{ok}')")
    with keeping(database, tmp_path, *mood, *tables, "CREATE TABLE other (id int PRIMARY KEY)") as kept:
        assert done(kept, "ALTER TYPE mood ADD VALUE 'happy' BEFORE 'ok'", "INSERT INTO t VALUES (2, 'happy')") is None
        assert done(kept, "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'") == (
            "a label of the enum mood was renamed to blue"
        )
        assert kept.why("other") is None


KEPT = [
    ("varchar(10)", "x", "varchar(20)"),
    ("varchar(10)", "x", "text"),
    ("numeric(10,2)", "1.5", "numeric(12,2)"),
    ("numeric(10,2)", "1.50", "numeric"),
    ("numeric(10,2)", "-100.00", "numeric"),
    ("timestamp", "2024-01-01 10:00", "timestamptz"),
    ("timestamp(3)", "2024-01-01 10:00", "timestamp(6)"),
    ("varbit(4)", "101", "varbit(8)"),
]


def test_types_whose_values_stay_as_they_are_are_followed(database: Database, tmp_path: Path) -> None:
    tables = [
        statement
        for place, (before, value, _) in enumerate(KEPT)
        for statement in (
            f"CREATE TABLE t{place} (id int PRIMARY KEY, c {before}, n text)",
            f"INSERT INTO t{place} VALUES (1, '{value}')",
        )
    ]
    with keeping(database, tmp_path, *tables) as kept:
        done(kept, *(f"ALTER TABLE t{place} ALTER c TYPE {after}" for place, (_, _, after) in enumerate(KEPT)))
        done(kept, *(f"INSERT INTO t{place} VALUES (2, '{value}')" for place, (_, value, _) in enumerate(KEPT)))
        for place in range(len(KEPT)):
            assert kept.why(f"t{place}") is None
            first, second = kept.rows(f"t{place}")
            assert first == {**second, "id": 1}


CHANGED = [
    ("int", "1", "TYPE bigint USING c * 10"),
    ("numeric(5,3)", "12.345", "TYPE numeric(10,1)"),
    ("text", "12", "TYPE int USING c::int"),
    ("timestamp", "2024-01-01 10:00", "TYPE timestamptz USING c AT TIME ZONE 'Europe/Berlin'"),
    ("int", "-1", "TYPE oid"),
    ("text", "x", "TYPE text USING c || 'y'"),
]


def test_types_that_may_change_values_make_a_table_incomplete(database: Database, tmp_path: Path) -> None:
    cases = [
        Case(
            [f"ALTER TABLE t ALTER c {alter}", *more],
            "",
            [f"CREATE TABLE t (id int PRIMARY KEY, c {before}, n text)", f"INSERT INTO t VALUES (1, '{value}')"],
        )
        for before, value, alter in CHANGED
        for more in ([], ["INSERT INTO t VALUES (2)"])
    ]
    assert not faults(database, tmp_path, cases)


def test_what_does_not_change_rows_marks_nothing(database: Database, tmp_path: Path) -> None:
    with keeping(database, tmp_path, *T) as kept:
        assert done(kept, "VACUUM FULL t") is None
        assert done(kept, "CLUSTER t USING t_pkey", "ANALYZE t", "REINDEX TABLE t") is None
        assert done(kept, "ALTER TABLE t SET (fillfactor = 50)", "CREATE INDEX ON t (v)") is None
        assert done(kept, "ALTER TABLE t REPLICA IDENTITY FULL", "GRANT SELECT ON t TO PUBLIC") is None
        assert done(kept, "ALTER TABLE t ALTER v SET NOT NULL", "ALTER TABLE t ALTER v SET DEFAULT 'd'") is None
        assert done(kept, "COMMENT ON TABLE t IS 'c'", "ALTER TABLE t ADD CHECK (id > 0)") is None
        assert done(kept, "TRUNCATE t", "INSERT INTO t VALUES (7, 'g')", "VACUUM FULL t") is None
        assert done(kept, "TRUNCATE t", "ALTER TABLE t ADD n int", "INSERT INTO t VALUES (8, 'h', 9)") is None
        assert kept.is_same("t")
        kept.restart()
        assert done(kept) is None


def test_a_rewrite_under_the_same_type_where_the_publication_lists_the_table(
    database: Database, tmp_path: Path
) -> None:
    listed = {"publication__autocreate__mode": "filtered"}
    numbers = ("CREATE TABLE n (id int PRIMARY KEY, c int)", "INSERT INTO n VALUES (1, 1)")
    with keeping(database, tmp_path, *T, *numbers, **listed) as kept:
        assert done(kept, "VACUUM FULL t", "VACUUM FULL n") is None
        assert kept.why("n") is None
        assert done(kept, "ALTER TABLE n ALTER c SET DEFAULT 7", "ALTER TABLE t ALTER v SET NOT NULL") is None
        assert kept.why("n") is None
        why = done(kept, "ALTER TABLE t ALTER v TYPE text USING upper(v)", "ALTER TABLE n ALTER c TYPE int USING c * 2")
        assert "rewritten while its columns were altered" in (why or "")
        assert "rewritten while its columns were altered" in (kept.why("n") or "")
