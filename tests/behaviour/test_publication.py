"""The publication on a real server: made, adapted or refused as its properties say."""

from __future__ import annotations

import pytest

from tailrace.errors import SourceError
from tests.behaviour.capture import capturing
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
        ("all_tables", "FOR TABLE other", (False, {"other"})),
        ("filtered", "FOR TABLE other", (False, {"entries"})),
        ("filtered", "FOR TABLE entries", (False, {"entries"})),
        ("no_tables", "FOR TABLE other", (False, {"other"})),
        ("disabled", "FOR TABLE other", (False, {"other"})),
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
