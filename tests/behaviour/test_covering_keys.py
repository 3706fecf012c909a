"""Keys of indexes with INCLUDE: what such an index only carries is no part of any key."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.connectors.postgres.admin.check_tables import captured_tables
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.snapshot.ranges import primary_key
from tailrace.model.table import TableId
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database

TABLES = (
    "CREATE TABLE by_primary (id int, x int, v text, PRIMARY KEY (id) INCLUDE (x))",
    "CREATE TABLE by_unique (v text, x int, id int NOT NULL)",
    "CREATE UNIQUE INDEX ON by_unique (id) INCLUDE (x)",
    "CREATE TABLE by_identity (id int NOT NULL, x int NOT NULL, v text, b int, a int, PRIMARY KEY (b, a) INCLUDE (id))",
    "CREATE UNIQUE INDEX by_identity_index ON by_identity (id) INCLUDE (x, v)",
    "ALTER TABLE by_identity REPLICA IDENTITY USING INDEX by_identity_index",
    # The first by name counts, of those without nullable columns.
    "CREATE TABLE by_several (a int NOT NULL, b int NOT NULL, c int)",
    "CREATE UNIQUE INDEX z ON by_several (b)",
    "CREATE UNIQUE INDEX y ON by_several (a) INCLUDE (c)",
    "CREATE UNIQUE INDEX x ON by_several (c)",
    "CREATE UNIQUE INDEX w ON by_several (b) WHERE c > 0",
    "CREATE UNIQUE INDEX v ON by_several (b, (a + 1))",
)
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "by_primary": (("id",), ("id",)),
    "by_unique": (("id",), ()),
    "by_identity": (("b", "a"), ("id",)),
    "by_several": (("a",), ()),
}


@pytest.fixture(params=["database", "database16"])
def tables(request: pytest.FixtureRequest) -> Database:
    """A database with tables of every such key, on PostgreSQL 18 and 16."""
    database: Database = request.getfixturevalue(request.param)
    database.execute(*TABLES)
    return database


def keys(found: list[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    return {row["table"].removeprefix("public."): row["schema"].key for row in found}


def test_the_catalog_the_log_and_the_preflight_agree(tables: Database) -> None:
    with capturing(tables) as capture:
        event_triggers.install(capture.config)
        with connect(capture.config) as connection:
            catalog = Catalog(connection, capture.config)
            found = {table.table: catalog.table(table) for table in catalog.tables()}
            by_name = {name: (each.schema.key, each.schema.identity) for name, each in found.items() if each}
            cut = {name: primary_key(connection, TableId(tables.name, "public", name)) for name in KEYS}
        capture.step()
        for name in KEYS:
            tables.execute(f"COMMENT ON TABLE {name} IS 'x'")
        told = {row["table"]: row for row in changes(capture)}
    assert by_name == KEYS
    assert {name: tuple(column.name for column in key) for name, key in cut.items()} == {
        "by_primary": ("id",),
        "by_unique": (),
        "by_identity": ("b", "a"),
        "by_several": (),
    }
    assert {name: row["key"] for name, row in told.items()} == {
        "public.by_primary": ("id",),
        "public.by_unique": (),
        "public.by_identity": ("b", "a"),
        "public.by_several": (),
    }
    with connect(capture.config) as connection:
        seen = captured_tables(connection, capture.config)
    assert {table.table: (table.key, table.identity) for table in seen} == {
        name: (frozenset(key), frozenset(identity)) for name, (key, identity) in KEYS.items()
    }


def changes(capture: Capture) -> list[dict[str, Any]]:
    """The schema changes of the next step: table and key."""
    found = [chunk for split in capture.plan() for chunk in capture.reader.read(split)]
    batches = [batch for chunk in found for batch in chunk.batches]
    return [{"table": str(batch.table.id), "key": batch.schema_change.key} for batch in batches if batch.schema_change]


def test_a_consumer_sees_the_delete_of_the_key_it_knows(tables: Database) -> None:
    tables.execute("INSERT INTO by_primary VALUES (1, 2, 'a')")
    with capturing(tables) as capture:
        (read,) = capture.step()
        tables.execute("UPDATE by_primary SET x = 3", "DELETE FROM by_primary")
        updated, deleted = capture.step()
    assert keys([read]) == keys([updated]) == keys([deleted]) == {"by_primary": ("id",)}
    assert (updated["op"], updated["after"]) == ("u", {"id": 1, "x": 3, "v": "a"})
    assert (deleted["op"], deleted["before"]) == ("d", {"id": 1, "x": None, "v": None})
    assert deleted["schema"].identity == ("id",)


def test_an_identity_index_marks_its_key_columns_alone(tables: Database) -> None:
    tables.execute("INSERT INTO by_identity VALUES (1, 2, 'a', 3, 4)")
    with capturing(tables) as capture:
        (read,) = capture.step()
        tables.execute("UPDATE by_identity SET id = 5", "DELETE FROM by_identity")
        updated, deleted = capture.step()
    assert [row["schema"].identity for row in (read, updated, deleted)] == [("id",)] * 3
    nothing = {"x": None, "v": None, "a": None, "b": None}
    assert (updated["before"], deleted["before"]) == ({"id": 1, **nothing}, {"id": 5, **nothing})
