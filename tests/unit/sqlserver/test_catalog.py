"""The catalog of SQL Server without a server: what is made of the rows that it gives."""

from __future__ import annotations

from typing import Any, cast

from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.config import resolve
from tailrace.model.table import TableId

_GIVEN = {
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "p",
    "database.names": "d",
    "topic.prefix": "t",
}


class _Rows:
    """A table of one column with a comment, of an alias type, and without keys."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        column = ("note", "nvarchar", 40, 0, 0, True, False, False, "(N'a')", "said", "Remark", False, None, None)
        return [column] if "is_identity" in statement else []


def test_comments_are_read() -> None:
    catalog = Catalog(cast(Connection, _Rows()), resolve(_GIVEN))
    (column,) = catalog.described(TableId("d", "dbo", "t"), 1).columns
    assert (column.comment, catalog.info(column).comment) == ("said", "said")


def test_an_alias_type_is_named_as_the_driver_names_it() -> None:
    """JdbcConnection.readTableColumn has the name from sp_columns."""
    catalog = Catalog(cast(Connection, _Rows()), resolve(_GIVEN))
    (column,) = catalog.described(TableId("d", "dbo", "t"), 1).columns
    info = catalog.info(column)
    assert column.shown(1).type_name == info.type.printed == info.type.reported == info.type.name == "Remark"
    assert info.value is not None
    assert (info.value.schema.type, info.type.length, info.type.is_character) == ("string", 20, True)
    assert info.default is not None
    assert info.default.literal == "a"
