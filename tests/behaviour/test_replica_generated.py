"""Replicas of PostgreSQL tables with generated columns, whether the log has these or not."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.behaviour.kept import Kept, keeping
from tests.conftest import Database

COLUMNS = (
    *("id int PRIMARY KEY", "q int", "p numeric(8,2)", 't text COLLATE "C"', "a int[]", "j jsonb"),
    "total numeric(10,1) GENERATED ALWAYS AS (q * p) {kind}",
    "low text GENERATED ALWAYS AS (lower(t) || '-' || id) {kind}",
    '"first One" int GENERATED ALWAYS AS (a[1]) {kind}',
    "k text GENERATED ALWAYS AS (j ->> 'k') {kind}",
    "one int GENERATED ALWAYS AS (1) {kind}",
)
FILLED = """
INSERT INTO g (id, q, p, t, a, j)
SELECT g, g, 1.25, 'It''s "' || g || '\\', ARRAY[g, 2], jsonb_build_object('k', g) FROM generate_series(1, 20) g
"""
MORE = """
INSERT INTO g (id, q, p, t, a, j)
VALUES (30, 2, 2.25, 'ÄB', '{7}', '{"k": "x"}'), (31, 1, 1, NULL, NULL, NULL)
"""


def made(kind: str) -> list[str]:
    """Statements that make and fill a table with generated columns of a kind."""
    return [f"CREATE TABLE g ({', '.join(COLUMNS).format(kind=kind)})", FILLED]


def check(kept: Kept, table: str = "g") -> None:
    kept.follow()
    assert kept.is_same(table)
    assert kept.why(table) is None


def follow(kept: Kept) -> None:
    """Change rows in all ways."""
    check(kept)
    kept.database.execute(
        "UPDATE g SET q = 100, p = NULL WHERE id = 1",
        MORE,
        "UPDATE g SET t = 'x' WHERE id BETWEEN 3 AND 5",
        "DELETE FROM g WHERE id = 4",
        "UPDATE g SET id = 60 WHERE id = 6",
    )
    check(kept)
    kept.database.execute("TRUNCATE g", "INSERT INTO g (id, q, p) VALUES (1, 2, 3)")
    check(kept)


@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
@pytest.mark.parametrize("published", ["none", "stored"])
def test_generated_columns_are_followed(database: Database, tmp_path: Path, kind: str, published: str) -> None:
    name = f"publication_{database.name}"
    statements = made(kind)
    statements.append(f"CREATE PUBLICATION {name} FOR ALL TABLES WITH (publish_generated_columns = {published})")
    with keeping(database, tmp_path, *statements) as kept:
        follow(kept)


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_generated_columns_of_older_servers_are_followed(database16: Database, tmp_path: Path, identity: str) -> None:
    with keeping(database16, tmp_path, *made("STORED"), f"ALTER TABLE g REPLICA IDENTITY {identity}") as kept:
        follow(kept)


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_large_values_that_the_log_does_not_repeat(database16: Database, tmp_path: Path, identity: str) -> None:
    tables = (
        "CREATE TABLE g (id int PRIMARY KEY, title text, body text, "
        "length int GENERATED ALWAYS AS (length(title) + length(body)) STORED)",
        "ALTER TABLE g ALTER body SET STORAGE EXTERNAL",
        f"ALTER TABLE g REPLICA IDENTITY {identity}",
        "INSERT INTO g SELECT g, 'a', repeat('x', 10000 + g) FROM generate_series(1, 5) g",
    )
    with keeping(database16, tmp_path, *tables) as kept:
        check(kept)
        database16.execute(
            "UPDATE g SET title = 'abc' WHERE id < 4",
            "UPDATE g SET title = 'gone' WHERE id = 5",
            "DELETE FROM g WHERE id = 5",
            "UPDATE g SET body = 'short' WHERE id = 2",
            "UPDATE g SET id = 10, title = 'moved' WHERE id = 1",
        )
        check(kept)


def test_tables_without_a_key_and_of_generated_columns_alone(database16: Database, tmp_path: Path) -> None:
    tables = (
        "CREATE TABLE g (n int, twice int GENERATED ALWAYS AS (n * 2) STORED)",
        "ALTER TABLE g REPLICA IDENTITY FULL",
        "INSERT INTO g VALUES (1), (1), (2), (NULL)",
        "CREATE TABLE alone (a int GENERATED ALWAYS AS (1) STORED)",
        "INSERT INTO alone DEFAULT VALUES",
    )
    with keeping(database16, tmp_path, *tables) as kept:
        check(kept)
        database16.execute(
            "INSERT INTO g VALUES (1), (3)",
            "DELETE FROM g WHERE ctid = (SELECT min(ctid) FROM g WHERE n = 1)",
            "UPDATE g SET n = 5 WHERE n = 2",
            "DELETE FROM g WHERE n IS NULL",
            "INSERT INTO alone DEFAULT VALUES",
            "INSERT INTO alone DEFAULT VALUES",
        )
        check(kept)
        check(kept, "alone")


def test_generated_columns_that_change(database: Database, tmp_path: Path) -> None:
    tables = (
        "CREATE TABLE g (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id * 2) VIRTUAL)",
        "INSERT INTO g VALUES (1), (2)",
        "CREATE TABLE h (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id * 2) STORED)",
        "INSERT INTO h VALUES (1), (2)",
    )
    with keeping(database, tmp_path, *tables) as kept:
        database.execute("ALTER TABLE h ALTER n DROP EXPRESSION", "INSERT INTO h VALUES (3, 4)")
        check(kept, "h")
        database.execute("ALTER TABLE g ALTER n SET EXPRESSION AS (id * 3)", "INSERT INTO g VALUES (3)")
        kept.follow()
        assert kept.why("g") == "the expression of the generated column n was changed"


def test_partitions_and_renamed_tables_are_computed(database16: Database, tmp_path: Path) -> None:
    tables = (
        "CREATE TABLE g (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id * 2) STORED) PARTITION BY RANGE (id)",
        "CREATE TABLE g_1 PARTITION OF g DEFAULT",
        "INSERT INTO g VALUES (1)",
        "CREATE TABLE h (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id * 2) STORED)",
    )
    with keeping(database16, tmp_path, *tables, publish__via__partition__root="true") as kept:
        database16.execute("INSERT INTO g VALUES (2)", "UPDATE g SET id = 3 WHERE id = 1", "INSERT INTO h VALUES (1)")
        database16.execute("ALTER TABLE h RENAME TO i", "INSERT INTO i VALUES (2)")
        check(kept)
        assert kept.rows("i") == [{"id": 2, "n": 4}]


def test_what_cannot_be_computed_is_told(database16: Database, tmp_path: Path) -> None:
    role = f"cdc_{uuid4().hex[:8]}"
    database16.server.create_role(role, "secret")
    tables = (
        "CREATE FUNCTION doubled(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'",
        "REVOKE EXECUTE ON FUNCTION doubled FROM PUBLIC",
        "CREATE TABLE g (id int PRIMARY KEY, n int GENERATED ALWAYS AS (doubled(id)) STORED)",
        "INSERT INTO g VALUES (1)",
        f"GRANT SELECT ON g TO {role}",
        f"CREATE PUBLICATION publication_{database16.name} FOR TABLE g",
    )
    given = {"database__user": role, "database__password": "secret", "publication__autocreate__mode": "disabled"}
    try:
        with keeping(database16, tmp_path, *tables, **given) as kept:
            assert kept.is_same("g")
            database16.execute("INSERT INTO g VALUES (2)")
            kept.follow()
            assert "n cannot be computed: " in str(kept.why("g"))
            assert "permission denied for function doubled" in str(kept.why("g"))
    finally:
        database16.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_an_identity_with_a_column_that_the_log_lacks_cannot_be_followed(database16: Database, tmp_path: Path) -> None:
    tables = (
        "CREATE TABLE g (id int NOT NULL, s text GENERATED ALWAYS AS (id::text) STORED NOT NULL, v text)",
        "CREATE UNIQUE INDEX g_by ON g (id, s)",
        "ALTER TABLE g REPLICA IDENTITY USING INDEX g_by",
    )
    with keeping(database16, tmp_path, *tables) as kept:
        assert kept.why("g") == (
            "its replica identity has a generated column, which the log does not have "
            "(ALTER TABLE ... REPLICA IDENTITY FULL)"
        )
