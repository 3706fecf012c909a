"""The order of tables of several databases."""

from __future__ import annotations

from tailrace.connectors.sql_tables.databases import by_database
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE


def test_tables_keep_their_order_inside_a_database() -> None:
    names = [(database, table) for table in ("u", "t") for database in ("a", "b")]
    tables = [TableId(database, "dbo", table, DATABASE_SCHEMA_TABLE) for database, table in names]
    assert [str(each) for each in by_database(tables, ["b", "a"])] == ["b.dbo.u", "b.dbo.t", "a.dbo.u", "a.dbo.t"]
