"""What `check` says of the publication is what a start does: green starts, red does not, and its remedies help."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tailrace.connectors.postgres.admin.checks import Finding, check
from tailrace.connectors.postgres.config import resolve
from tailrace.errors import TailraceError
from tests.behaviour.capture import capturing
from tests.behaviour.signalling import drained, keyed
from tests.conftest import Database

PUBLICATION = "CREATE PUBLICATION p FOR TABLE a, b"


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """A role that may replicate and read, and owns nothing."""
    name = f"cdc_{uuid4().hex[:8]}"
    database.server.create_role(name, "secret")
    database.execute(
        "CREATE TABLE a (id int PRIMARY KEY)",
        "CREATE TABLE b (id int PRIMARY KEY)",
        "CREATE TABLE c (id int PRIMARY KEY)",
        "CREATE UNLOGGED TABLE u (id int PRIMARY KEY)",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
    )
    yield name
    database.execute(f"REASSIGN OWNED BY {name} TO CURRENT_USER", f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def properties(role: str, **more: str) -> dict[str, str]:
    return {
        "database.user": role,
        "database.password": "secret",
        "publication.name": "p",
        "publication.autocreate.mode": "filtered",
        "table.include.list": r"public\.a,public\.b",
        **more,
    }


def problems(database: Database, given: dict[str, str]) -> list[Finding]:
    config = resolve({**database.properties, "topic.prefix": "t", "slot.name": f"slot_{database.name}", **given})
    return [finding for finding in check(config) if finding.ok is False]


def published(database: Database) -> set[str]:
    with database.connect() as connection:
        return {row[0] for row in connection.execute("SELECT tablename::text FROM pg_publication_tables")}


def runs(database: Database, given: dict[str, str]) -> str | None:
    """What a start fails with, None where it reads a change."""
    with capturing(database, **given) as capture:
        try:
            drained(capture)
            database.execute("INSERT INTO a VALUES (1)")
            is_empty = given["publication.autocreate.mode"] == "no_tables"
            assert keyed(drained(capture)) == ([] if is_empty else [("c", 1)])
        except TailraceError as error:
            return f"{error.what} | {error.remedy}"
    return None


OWNS_PUBLICATION = "ALTER PUBLICATION p OWNER TO {role}"
OWNS_TABLES = ["ALTER TABLE a OWNER TO {role}", "ALTER TABLE b OWNER TO {role}"]
MAY_CREATE = "GRANT CREATE ON DATABASE {database} TO {role}"
NARROW = "ALTER PUBLICATION p SET (publish = 'insert')"
SKIPS = {"skipped.operations": "u,d,t"}
FULL = {"replica.identity.autoset.values": "public.a:FULL"}


@pytest.mark.parametrize(
    ("setup", "more", "wrong"),
    [
        # A role that owns nothing.
        ([PUBLICATION], {}, None),
        ([PUBLICATION], {"publication.autocreate.mode": "disabled"}, None),
        ([PUBLICATION], {"publication.autocreate.mode": "all_tables"}, None),
        ([PUBLICATION + ", c"], {}, None),
        ([PUBLICATION, NARROW], SKIPS, None),
        ([PUBLICATION], SKIPS, "does not own the publication p"),
        ([PUBLICATION, NARROW], {}, "does not publish update, delete"),
        (["CREATE PUBLICATION p FOR TABLE a"], {}, "does not own the publication p and does not own public.b"),
        (["CREATE PUBLICATION p FOR TABLE a"], {"publication.autocreate.mode": "disabled"}, "lacks public.b"),
        (["CREATE PUBLICATION p FOR ALL TABLES"], {}, "is FOR ALL TABLES"),
        (["CREATE PUBLICATION p FOR ALL TABLES"], {"publication.autocreate.mode": "all_tables"}, None),
        (["CREATE PUBLICATION p FOR TABLES IN SCHEMA public"], {}, None),
        ([], {}, "does not own public.a, public.b"),
        (OWNS_TABLES, {}, "may not create the publication p"),
        ([], {"publication.autocreate.mode": "no_tables"}, "may not create the publication p"),
        ([], {"publication.autocreate.mode": "disabled"}, "Publication autocreation is disabled"),
        ([], {"publication.autocreate.mode": "all_tables"}, "only a superuser may create p"),
        ([MAY_CREATE], {}, "does not own public.a, public.b"),
        ([MAY_CREATE], {"publication.autocreate.mode": "no_tables"}, None),
        ([PUBLICATION], FULL, "takes the table's owner"),
        ([PUBLICATION, "ALTER TABLE a REPLICA IDENTITY FULL"], FULL, None),
        ([PUBLICATION], {"table.include.list": r"public\.(a|b|u)"}, None),
        # One that owns the publication alone, the tables alone, or both.
        ([PUBLICATION + ", c", OWNS_PUBLICATION], {}, None),
        ([PUBLICATION, OWNS_PUBLICATION], SKIPS, None),
        (["CREATE PUBLICATION p FOR TABLE a", OWNS_PUBLICATION], {}, "does not own public.b"),
        (["CREATE PUBLICATION p FOR TABLE a", *OWNS_TABLES], {}, "does not own the publication p"),
        (["CREATE PUBLICATION p FOR TABLE a, c", OWNS_PUBLICATION, *OWNS_TABLES], {}, None),
        ([MAY_CREATE, *OWNS_TABLES], {}, None),
        ([PUBLICATION, *OWNS_TABLES], FULL, None),
    ],
)
def test_a_start_does_what_check_predicts(
    database: Database, role: str, setup: list[str], more: dict[str, str], wrong: str | None
) -> None:
    database.execute(*(statement.format(role=role, database=database.name) for statement in setup))
    given = properties(role, **more)
    found = problems(database, given)
    before = published(database)
    said = runs(database, given)
    if wrong is None:
        assert said is None
        assert found == []
        return
    assert wrong in " ".join(finding.what for finding in found)
    assert wrong in (said or "")
    assert published(database) == before


@pytest.mark.parametrize(
    ("setup", "more"),
    [
        ([], {}),
        ([], {"publication.autocreate.mode": "all_tables"}),
        ([], {"publication.autocreate.mode": "no_tables", "table.include.list": "public.*"}),
        ([MAY_CREATE], {"publication.autocreate.mode": "all_tables"}),
        (OWNS_TABLES, {}),
        ([], {"publication.autocreate.mode": "disabled"}),
        (["CREATE PUBLICATION p FOR TABLE a"], {}),
        (["CREATE PUBLICATION p FOR TABLE a"], {"publication.autocreate.mode": "disabled"}),
        ([PUBLICATION], SKIPS),
        ([PUBLICATION], FULL),
        ([PUBLICATION, NARROW], {}),
    ],
)
def test_after_its_remedies_check_is_green_and_a_start_needs_nothing_else(
    database: Database, role: str, setup: list[str], more: dict[str, str]
) -> None:
    """An administrator runs what `check` says."""
    database.execute(*(statement.format(role=role, database=database.name) for statement in setup))
    given = properties(role, **more)
    found = problems(database, given)
    assert found
    for finding in found:
        follow(database, given, finding.remedy or "")
    assert problems(database, given) == []
    assert runs(database, given) is None


def follow(database: Database, given: dict[str, str], remedy: str) -> None:
    """Do what a remedy says first, to the letter."""
    first, _, then = remedy.partition("; or ")[0].partition("; then set ")
    for statement in first.split("; "):
        database.execute(statement.rpartition(": ")[2])
    given.update(dict([then.split("=")]) if then else {})


@pytest.mark.parametrize("mode", ["all_tables", "filtered", "disabled"])
def test_a_start_without_check_names_all_that_is_needed_at_once(database: Database, role: str, mode: str) -> None:
    """Also the right to read, which is needed after the publication."""
    database.execute(f"REVOKE SELECT ON ALL TABLES IN SCHEMA public FROM {role}")
    given = properties(role, **{"publication.autocreate.mode": mode})
    _, _, remedy = (runs(database, given) or "").partition(" | ")
    assert f'GRANT SELECT ON "public"."a" TO "{role}"; GRANT SELECT ON "public"."b" TO "{role}"' in remedy
    assert "GRANT CREATE" not in remedy, "a superuser creates it"
    follow(database, given, remedy)
    assert given["publication.autocreate.mode"] == "disabled"
    assert runs(database, given) is None


def test_a_publication_that_is_as_it_should_be_is_left_alone(database: Database, role: str) -> None:
    database.execute(PUBLICATION)
    with database.connect() as connection:
        query = "SELECT xmin::text FROM pg_publication UNION ALL SELECT xmin::text FROM pg_publication_rel"
        before = connection.execute(query).fetchall()
        assert runs(database, {**database.properties, **properties("postgres"), **database.properties}) is None
        assert connection.execute(query).fetchall() == before
