"""The catalog of Db2 without a server: what is made of the rows that it gives."""

from __future__ import annotations

from typing import Any, cast

from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.config import resolve
from tailrace.connectors.sql_tables.tables import Connection

_GIVEN = {
    "database.hostname": "h",
    "database.dbname": "SHOP",
    "topic.prefix": "t",
    "cdc.control.schema": "APP",
    "cdc.change.tables.schema": "APP",
}


class _OneSchema:
    """A table beside its change table and the control tables."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        if "IBMSNAP_REGISTER r" in statement:
            return [("APP", "ORDERS", None, "CDC_APP_ORDERS", "A")]
        names = ("ORDERS", "CDC_APP_ORDERS", "IBMSNAP_REGISTER", "ibmqrep_x")
        return [("APP", name, number, 3) for number, name in enumerate(names)]


def test_tables_are_captured_that_share_the_schema_of_their_change_tables() -> None:
    catalog = Catalog(cast(Connection, _OneSchema()), resolve(_GIVEN))
    assert [table.table for table in catalog.captured()] == ["ORDERS"]
