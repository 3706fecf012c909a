"""The work that each table of a transaction adds: none at the catalog, and one batch of changes."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.log.decoder import LogDecoder
from tests.behaviour.capture import capturing, reader, rows
from tests.conftest import Database


def test_the_catalog_is_queried_once_for_all_tables_of_a_transaction(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [f"t{place}" for place in range(40)]
    database.execute(*(f"CREATE TABLE {table} (id int PRIMARY KEY, v numeric(9, 2))" for table in tables))
    asked: list[Any] = []
    execute = psycopg.Connection.execute

    def counted(connection: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(connection.info.get_parameters().get("application_name"))
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


def test_tables_of_one_structure_are_decoded_together_and_give_the_rows_that_each_gives_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"tenant{place}" for place in range(4)]
    made = "id int PRIMARY KEY, v numeric(9, 2) NOT NULL DEFAULT 0, at timestamptz, body text"
    database.execute(
        *(f"CREATE SCHEMA {name}; CREATE TABLE {name}.orders ({made})" for name in names),
        "ALTER TABLE tenant1.orders REPLICA IDENTITY FULL",
        "ALTER TABLE tenant2.orders ADD COLUMN more text",
        *(f"ALTER TABLE {name}.orders ALTER COLUMN body SET STORAGE EXTERNAL" for name in names),
    )
    tables = ",".join(f"{name}.orders" for name in names)
    decode, whole = LogDecoder._batch, []

    def counted(self: LogDecoder, frames: Any, rows: Any, *rest: Any) -> Any:
        whole.append([relation.schema for relation in rows.relations])
        return decode(self, frames, rows, *rest)

    with capturing(database, snapshot__mode="no_data", table__include__list=tables) as capture:
        capture.step()
        insert = "INSERT INTO {}.orders VALUES ({}, 1.5, '2026-01-02 03:04:05+00', repeat('x', 5000))"
        database.execute(
            "; ".join(insert.format(name, place) for place in range(3) for name in names),
            "; ".join(f"UPDATE {name}.orders SET v = 2; DELETE FROM {name}.orders WHERE id = 1" for name in names),
            "INSERT INTO tenant3.orders VALUES (9, 1)",
        )
        begin = capture.offset
        monkeypatch.setattr(LogDecoder, "_batch", counted)
        together = capture.step()
        monkeypatch.setattr(LogDecoder, "_batch", decode)
        alone = []
        for name in names:
            capture.offset = begin
            capture.forget_streams()
            config = resolve({**capture.config.given, "table.include.list": f"{name}.orders"})
            alone += rows(chunk for split in capture.plan() for chunk in reader(config).read(split))
    assert ["tenant0", "tenant3"] in whole
    assert ["tenant1"] in whole
    assert ["tenant2"] in whole
    assert len(together) == 4 * (3 + 3 + 1) + 1
    assert together == sorted(alone, key=lambda row: row["order"])
