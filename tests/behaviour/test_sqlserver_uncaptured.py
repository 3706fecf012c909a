"""Columns of SQL Server's tables of which no capture instance has changes. On the stand-in."""

from __future__ import annotations

import pytest

from tailrace.connectors import registry
from tailrace.connectors.sqlserver import narrower
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.log.end import log_end
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.connectors.sqlserver.structures import structures
from tests.conformance.sqlserver import ENABLE, SqlServerSource


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


def unsent(source: SqlServerSource, table: str = "orders") -> str:
    """Why changes of a table do not all arrive."""
    source.server.settle(source.name)
    config = registry.named("sqlserver").load().resolve({**source.properties("p"), "topic.prefix": "t"})
    server = DIALECT.server(config)
    try:
        found = server.ask(
            lambda connection: structures(connection, Catalog(connection, config), log_end(connection, config))
        )
    finally:
        server.close()
    return found[source.id(table)].unsent or ""


def test_a_column_that_was_added_and_is_in_no_instance_is_told_after_a_while(
    source: SqlServerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.run("ALTER TABLE orders ADD late int NOT NULL DEFAULT 7")
    assert unsent(source) == "", "its instance may be about to be made"
    monkeypatch.setattr(narrower, "_SOON_S", 0)
    assert "dbo_orders" in unsent(source)
    assert "lacks late" in unsent(source)
    source.run(f"{ENABLE.format('orders')}, @capture_instance = 'second'")
    assert unsent(source) == ""


def test_a_column_that_was_kept_out_of_its_instance_is_no_problem(
    source: SqlServerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(narrower, "_SOON_S", 0)
    source.run("CREATE TABLE part (id int PRIMARY KEY, a int, b int)")
    source.run(f"{ENABLE.format('part')}, @captured_column_list = 'id, a'")
    assert unsent(source, "part") == ""


def test_a_column_that_was_dropped_and_added_again_is_another_one(source: SqlServerSource) -> None:
    source.run("ALTER TABLE orders DROP COLUMN v", "ALTER TABLE orders ADD v int NOT NULL DEFAULT 7")
    assert unsent(source).startswith("v was dropped and added again")
