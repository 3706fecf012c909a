"""The publication on a real server: created, altered or refused as its properties say."""

from __future__ import annotations

import pytest

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.server import publication
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database

TABLE = "CREATE TABLE entries (id int PRIMARY KEY, writer int, note text)"


def published(database: Database) -> tuple[bool, set[str]] | None:
    """Whether it is for all tables, and the tables it names; None when there is none."""
    with database.connect() as connection:
        row = connection.execute("SELECT puballtables FROM pg_publication").fetchone()
        named = connection.execute("SELECT tablename FROM pg_publication_tables").fetchall()
    return None if row is None else (bool(row[0]), {name for (name,) in named})


@pytest.mark.parametrize(
    ("mode", "existing", "expected"),
    [
        ("all_tables", "", (True, {"entries", "other"})),
        ("filtered", "", (False, {"entries"})),
        ("no_tables", "", (False, set())),
        ("disabled", "", "autocreation is disabled"),
        ("all_tables", "FOR TABLE other", "lacks public.entries"),
        ("filtered", "FOR TABLE other", (False, {"entries"})),
        ("filtered", "FOR TABLE entries", (False, {"entries"})),
        ("no_tables", "FOR TABLE other", (False, {"other"})),
        ("disabled", "FOR TABLE other", "lacks public.entries"),
        ("filtered", "FOR ALL TABLES", "FOR ALL TABLES"),
        ("disabled", "FOR ALL TABLES", (True, {"entries", "other"})),
    ],
)
def test_publications(
    database: Database, mode: str, existing: str, expected: str | tuple[bool, set[str]] | None
) -> None:
    database.execute(TABLE, "CREATE TABLE other (id int PRIMARY KEY)")
    if existing:
        database.execute(f"CREATE PUBLICATION publication_{database.name} {existing}")
    properties = {"publication__autocreate__mode": mode, "table__include__list": "public.entries"}
    with capturing(database, **properties) as capture:
        if isinstance(expected, str):
            with pytest.raises(SourceError, match=expected) as caught:
                capture.step()
            assert caught.value.remedy
        else:
            capture.step()
            assert published(database) == expected


def test_a_filtered_publication_without_a_table_is_refused(database: Database) -> None:
    properties = {"publication__autocreate__mode": "filtered", "table__include__list": "public.none"}
    with capturing(database, **properties) as capture, pytest.raises(SourceError, match="No table filters found"):
        capture.step()
    assert published(database) is None


def test_operations_skipped_by_hand_are_not_published(database: Database) -> None:
    database.execute(TABLE)
    with capturing(database, skipped__operations="d", publication__autocreate__mode="filtered") as capture:
        capture.step()
    with database.connect() as connection:
        flags = connection.execute("SELECT pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication").fetchone()
    assert flags == (True, True, False, True)


def test_a_table_to_include_that_is_missing_and_a_publication_that_is(database: Database) -> None:
    database.execute(TABLE, "CREATE PUBLICATION there FOR TABLE entries")
    config = resolve({**database.properties, "topic.prefix": "t", "publication.name": "there"})
    assert publication.publish(config, [TableId(database.name, "public", "entries")]) == []
    with pytest.raises(SourceError, match=r"public\.nowhere: there is no such table"):
        publication.publish(config, [TableId(database.name, "public", "nowhere")])
    config = resolve({**database.properties, "topic.prefix": "t", "publication.name": "none"})
    with pytest.raises(SourceError, match=r"publication none: there is none\n.*TABLE \"public\".\"entries\";"):
        publication.publish(config, [TableId(database.name, "public", "entries")])


def test_a_partitioned_table_is_published_if_its_changes_are_sent_under_its_name(database: Database) -> None:
    database.execute(
        TABLE,
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts DEFAULT",
        "CREATE PUBLICATION there FOR TABLE entries",
    )
    given = {**database.properties, "topic.prefix": "t", "publication.name": "there"}
    config = resolve({**given, "table.include.list": "public.entries"})
    root, part = (TableId(database.name, "public", name) for name in ("parts", "parts_1"))
    with pytest.raises(SourceError, match=r"by the names of its partitions \(public\.parts_1\), which"):
        publication.publish(config, [root])
    assert publication.publish(config, [part]) == ["public.parts_1"]
    assert publication.publish(resolve({**given, "table.include.list": "public.parts_1"}), [root]) == ["public.parts"]
    database.execute(
        "ALTER PUBLICATION there SET (publish_via_partition_root = true)",
        "ALTER PUBLICATION there DROP TABLE parts, parts_1",
    )
    assert publication.publish(config, [part]) == ["public.parts_1"]
    assert publication.publish(config, [root]) == ["public.parts"]
    with pytest.raises(SourceError, match=r"of the partition public\.parts_1 by the name of public\.parts, which"):
        publication.publish(config, [part])


def test_a_publication_that_is_none_is_told_at_the_start(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """With the ones that there are, as the name may be wrong; the right one continues."""
    database.execute(TABLE)
    with capturing(database, snapshot__mode="no_data") as capture:
        capture.step()
        offset, properties = capture.offset, dict(capture.config.given)
    caplog.clear()
    second = Capture(database, {**properties, "publication.name": "mistyped"})
    second.offset = offset
    second.step()
    warned = [record.getMessage() for record in caplog.records if "no publication mistyped" in record.getMessage()]
    assert len(warned) == 1
    assert f"publications of the database: publication_{database.name}" in warned[0]
    assert "set publication.name to that one" in warned[0]
    database.execute("INSERT INTO entries VALUES (1, 1, 'x')")
    with pytest.raises(SourceError, match="mistyped") as caught:
        second.step()
    assert "set publication.name to that one" in (caught.value.remedy or "")
    second.close()
    third = Capture(database, properties)
    third.offset = offset
    assert [row["op"] for row in third.step()] == ["c"]
    third.close()
