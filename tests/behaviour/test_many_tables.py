"""The work that each table of a transaction adds: none at the catalog, and one batch of changes."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.behaviour.capture import capturing
from tests.conftest import Database


def test_the_catalog_is_asked_once_for_all_tables_of_a_transaction(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [f"t{place}" for place in range(40)]
    database.execute(*(f"CREATE TABLE {table} (id int PRIMARY KEY, v numeric(9, 2))" for table in tables))
    asked: list[Any] = []
    execute = psycopg.Connection.execute

    def counted(connection: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(connection.info.get_parameters()["application_name"])
        return execute(connection, *arguments, **options)

    with capturing(database, snapshot__mode="no_data") as capture:
        capture.step()
        inserts = "; ".join(
            f"INSERT INTO {table} VALUES (1, 1.5); INSERT INTO {table} VALUES (2, 2)" for table in tables
        )
        database.execute(f"DO $$BEGIN {inserts}; END$$")
        splits = capture.plan()
        monkeypatch.setattr(psycopg.Connection, "execute", counted)
        chunks = [chunk for split in splits for chunk in capture.reader.read(split)]
    batches = [batch for chunk in chunks for batch in chunk.batches]
    assert [(batch.table.id.table, len(batch)) for batch in batches] == [(table, 2) for table in tables]
    # The session's settings aside: tables, columns and types; the keys are asked by a cursor.
    assert sum(name == "tailrace catalog" for name in asked) <= 6
