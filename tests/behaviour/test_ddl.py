"""DDL told by the triggers of `tailrace init --ddl`: what comes, in which order, and what does not come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.connectors.postgres import ddl
from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.record import RecordEncoder
from tailrace.model.change import ChangeBatch
from tailrace.model.schema_change import SchemaChange
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database


@pytest.fixture(params=["database", "database16"])
def told(request: pytest.FixtureRequest) -> Iterator[Capture]:
    """A pipeline that streams from a database with the triggers; on PostgreSQL 18 and 16."""
    with capturing(request.getfixturevalue(request.param)) as capture:
        ddl.install(capture.config)
        capture.step()
        yield capture


def batches(capture: Capture) -> list[ChangeBatch]:
    """The batches of the next step, in their order."""
    return [batch for split in capture.plan() for chunk in capture.connector.read(split) for batch in chunk.batches]


def changes(capture: Capture) -> list[tuple[str, SchemaChange]]:
    """The schema changes of the next step, each with its table."""
    return [(str(each.table.id), each.schema_change) for each in batches(capture) if each.schema_change is not None]


def kinds(capture: Capture) -> list[tuple[str, str]]:
    return [(table, change.kind) for table, change in changes(capture)]


def test_tables_are_created_altered_and_dropped(told: Capture) -> None:
    told.database.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE t (id serial PRIMARY KEY, price numeric(9, 2) NOT NULL, name varchar(10) DEFAULT 'x', m mood)",
        "COMMENT ON COLUMN t.price IS 'in euro'",
        "ALTER TABLE t ADD tags text[]",
        "ALTER TABLE t RENAME name TO title",
        "ALTER TABLE t ALTER price TYPE numeric(12, 3), DROP m",
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, price)",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE u",
    )
    found = changes(told)
    assert [(table, change.kind) for table, change in found] == [
        ("public.t", "CREATE"),
        *[("public.t", "ALTER")] * 5,
        ("public.u", "ALTER"),
        ("public.u", "DROP"),
    ]
    created, commented, added, renamed, retyped, rekeyed, moved, dropped = (change for _, change in found)
    assert created.statement is not None
    assert created.statement.startswith("CREATE TABLE t")
    assert created.key == ("id",)
    columns = {column.name: column for column in created.columns}
    assert list(columns) == ["id", "price", "name", "m"]
    assert (columns["id"].auto_incremented, columns["id"].optional, columns["id"].jdbc_type) == (True, False, 4)
    assert (columns["price"].length, columns["price"].scale, columns["price"].type_expression) == (9, 2, "numeric(9,2)")
    assert (columns["name"].length, columns["name"].default) == (10, "'x'::character varying")
    assert columns["m"].enum_values == ("sad", "ok")
    assert commented.columns[1].comment == "in euro"
    assert (added.columns[-1].name, added.columns[-1].jdbc_type) == ("tags", 2003)
    assert renamed.renamed == (("name", "title"),)
    assert (retyped.renamed, retyped.dropped, retyped.columns[1].scale) == ((), ("m",), 3)
    assert [column.position for column in retyped.columns] == [1, 2, 3, 4]
    assert rekeyed.key == ("id", "price")
    assert str(moved.previous) == "public.t"
    assert (dropped.columns, dropped.previous) == ((), None)
