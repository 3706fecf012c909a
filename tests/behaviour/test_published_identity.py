"""Publications that would make the server refuse the application's own UPDATE and DELETE are never made."""

from __future__ import annotations

import psycopg
import pytest

from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.admin.checks import check
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.server import publication
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tests.behaviour.capture import capturing
from tests.conftest import Database

STORED = (
    "CREATE TABLE post (id int PRIMARY KEY, title text, slug text GENERATED ALWAYS AS (lower(title)) STORED, n int)"
)
VIRTUAL = "CREATE TABLE post (id int PRIMARY KEY, title text, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL, n int)"
BY_INDEX = (
    "CREATE TABLE post (id int NOT NULL, title text, n int, "
    "slug text GENERATED ALWAYS AS (lower(title)) STORED NOT NULL)",
    "CREATE UNIQUE INDEX of_slug ON post (id, slug)",
    "ALTER TABLE post REPLICA IDENTITY USING INDEX of_slug",
)
FULL = "ALTER TABLE post REPLICA IDENTITY FULL"
ROW = "INSERT INTO post (id, title) VALUES (1, 'A')"


def changes(database: Database) -> str | None:
    """Change and delete the row; what the server says against it."""
    try:
        database.execute("UPDATE post SET n = 2", "DELETE FROM post")
    except psycopg.Error as error:
        return str(error)
    return None


def problems(database: Database, **properties: str) -> list[Finding]:
    given = {name.replace("__", "."): value for name, value in properties.items()}
    names = {"slot.name": f"slot_{database.name}", "publication.name": f"publication_{database.name}"}
    config = resolve({**database.properties, "topic.prefix": "t", **names, **given})
    return [finding for finding in check(config) if finding.ok is False]


def publications(database: Database) -> int:
    with database.connect() as connection:
        return len(connection.execute("SELECT FROM pg_publication").fetchall())


def refusal(database: Database, **properties: str) -> SourceError:
    with capturing(database, **properties) as capture, pytest.raises(SourceError) as caught:
        capture.step()
    return caught.value


@pytest.mark.parametrize("mode", ["all_tables", "filtered"])
@pytest.mark.parametrize("statements", [(STORED, FULL), BY_INDEX], ids=["full", "index"])
def test_a_publication_sends_stored_generated_columns(
    database: Database, mode: str, statements: tuple[str, ...]
) -> None:
    database.execute(*statements, ROW)
    with capturing(database, publication__autocreate__mode=mode) as capture:
        assert [row["after"]["slug"] for row in capture.step()] == ["a"]
        database.execute("UPDATE post SET title = 'B'")
        assert [row["after"]["slug"] for row in capture.step()] == ["b"]
    assert changes(database) is None


def test_servers_that_cannot_send_them_refuse_nothing(database16: Database) -> None:
    database16.execute(STORED, FULL, ROW)
    with capturing(database16) as capture:
        capture.step()
    assert problems(database16) == []
    assert changes(database16) is None


@pytest.mark.parametrize("mode", ["all_tables", "filtered"])
def test_virtual_columns_of_an_identity_refuse_the_start(database: Database, mode: str) -> None:
    database.execute(VIRTUAL, FULL, ROW)
    (problem,) = problems(database, publication__autocreate__mode=mode)
    assert "does not send public.post.twice, which the replica identity contains" in problem.what
    assert problem.remedy == 'ALTER TABLE "public"."post" REPLICA IDENTITY DEFAULT'
    refusal(database, publication__autocreate__mode=mode)
    assert publications(database) == 0
    assert changes(database) is None
    database.execute(problem.remedy)
    with capturing(database, publication__autocreate__mode=mode) as capture:
        capture.step()
    assert problems(database, publication__autocreate__mode=mode, slot__takeover="true") == []
    database.execute(ROW)
    assert changes(database) is None


def test_a_table_that_is_not_captured_counts_in_a_publication_for_all_tables(database: Database) -> None:
    database.execute(VIRTUAL, FULL, "CREATE TABLE other (id int PRIMARY KEY)")
    (problem,) = problems(database, table__include__list=r"public\.other")
    assert "public.post.twice" in problem.what
    refusal(database, table__include__list=r"public\.other")
    filtered = {"table__include__list": r"public\.other", "publication__autocreate__mode": "filtered"}
    assert problems(database, **filtered) == []
    with capturing(database, **filtered) as capture:
        capture.step()


def test_identities_that_a_start_would_set_refuse_it(database: Database) -> None:
    wishes = {"replica__identity__autoset__values": r"public\.post:FULL"}
    database.execute(VIRTUAL, ROW)
    (problem,) = problems(database, **wishes)
    assert problem.remedy == "leave public.post out of replica.identity.autoset.values"
    refusal(database, **wishes)
    with capturing(database) as capture:
        capture.step()
        begun = dict(capture.offset)
    with capturing(database, **wishes) as capture:
        capture.offset = begun
        with pytest.raises(SourceError, match=r"public\.post\.twice"):
            capture.step()
    with database.connect() as connection:
        (identity,) = connection.execute("SELECT relreplident FROM pg_class WHERE relname = 'post'").fetchone() or (
            None,
        )
    assert identity == "d"
    assert changes(database) is None


@pytest.mark.parametrize(
    ("table", "made", "remedy"),
    [
        ((STORED, FULL), "FOR ALL TABLES", 'ALTER PUBLICATION "{}" SET (publish_generated_columns = stored)'),
        (BY_INDEX, "FOR TABLE post", 'ALTER PUBLICATION "{}" SET (publish_generated_columns = stored)'),
        ((STORED, FULL), "FOR TABLE post (id, title, n)", 'ALTER TABLE "public"."post" REPLICA IDENTITY DEFAULT'),
        ((VIRTUAL, FULL), "FOR TABLES IN SCHEMA public", 'ALTER TABLE "public"."post" REPLICA IDENTITY DEFAULT'),
    ],
)
def test_publications_that_exist_already(database: Database, table: tuple[str, ...], made: str, remedy: str) -> None:
    name = f"publication_{database.name}"
    database.execute(*table, ROW, f"CREATE PUBLICATION {name} {made}")
    assert "cannot update table" in str(changes(database))
    mode = {"publication__autocreate__mode": "disabled", "column__exclude__list": "public.post.slug"}
    (problem,) = problems(database, **mode)
    assert problem.remedy == remedy.format(name)
    assert problem.what in str(refusal(database, **mode))
    database.execute(problem.remedy)
    assert problems(database, **mode) == []
    assert changes(database) is None


@pytest.mark.parametrize("operations", ["insert", "insert, truncate"])
def test_operations_that_are_not_published_are_not_refused(database: Database, operations: str) -> None:
    database.execute(STORED, FULL, ROW, f"CREATE PUBLICATION publication_{database.name} FOR ALL TABLES")
    database.execute(f"ALTER PUBLICATION publication_{database.name} SET (publish = '{operations}')")
    assert problems(database, publication__autocreate__mode="disabled") == []
    assert changes(database) is None


def test_a_table_that_is_added_is_refused_before_it_is_published(database: Database) -> None:
    database.execute(VIRTUAL, FULL, ROW, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE PUBLICATION there FOR TABLE a")
    config = resolve({**database.properties, "topic.prefix": "t", "publication.name": "there"})
    with pytest.raises(SourceError, match=r"public\.post\.twice"):
        publication.publish(config, [TableId(database.name, "public", "post")])
    assert changes(database) is None


@pytest.mark.parametrize("partitions", ["root", "leaf"])
def test_partitions_are_refused_with_their_root(database: Database, partitions: str) -> None:
    database.execute(
        f"{VIRTUAL.replace('post', 'parts')} PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts DEFAULT",
        f"ALTER TABLE {'parts' if partitions == 'root' else 'parts_1'} REPLICA IDENTITY FULL",
        f"CREATE PUBLICATION publication_{database.name} FOR TABLE parts WITH (publish_via_partition_root = true)",
        "INSERT INTO parts VALUES (1)",
    )
    is_refused = True
    try:
        database.execute("DELETE FROM parts")
        is_refused = False
    except psycopg.Error:
        pass
    found = problems(database, publication__autocreate__mode="disabled", table__include__list=r"public\.parts")
    assert bool(found) is is_refused
