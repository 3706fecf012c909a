"""Rows of tables that are dropped or renamed before they are read: the log's description remains."""

from __future__ import annotations

from typing import Any

from tests.behaviour.capture import capturing
from tests.conftest import Database

CHANGES = (
    "CREATE TABLE dropped (id int PRIMARY KEY, v text NOT NULL)",
    "CREATE TABLE renamed (id int PRIMARY KEY, v text NOT NULL)",
    "INSERT INTO dropped VALUES (1, 'a')",
    "INSERT INTO renamed VALUES (1, 'a')",
    "DROP TABLE dropped",
    "ALTER TABLE renamed RENAME TO other",
)


def described(rows: list[dict[str, Any]]) -> dict[str, tuple[tuple[str, ...], list[bool]]]:
    """Key, and which columns are optional, by table."""
    return {
        row["table"]: (row["schema"].key, [column.schema.optional for column in row["schema"].columns]) for row in rows
    }


def test_the_key_is_kept(database: Database) -> None:
    with capturing(database) as capture:
        capture.step()
        database.execute(*CHANGES)
        found = described(capture.step())
    assert found == {"public.dropped": (("id",), [False, True]), "public.renamed": (("id",), [False, False])}
