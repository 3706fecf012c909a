"""The catalog of SQL Server without a server: what is made of the rows that it gives."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.connectors.change_tables.dialect import Connection
from tailrace.connectors.sqlserver.catalog import Catalog
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
    """A table of one column with a comment, and without keys."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return [("note", "nvarchar", 40, 0, 0, True, False, False, None, "said")] if "is_identity" in statement else []


@pytest.mark.parametrize(("faults", "comment"), [("false", "said"), ("true", None)])
def test_comments_are_read_and_the_reference_reads_none(faults: str, comment: str | None) -> None:
    catalog = Catalog(cast(Connection, _Rows()), resolve({**_GIVEN, "compat.faults": faults}))
    (column,) = catalog.described(TableId("d", "dbo", "t"), 1).columns
    assert (column.comment, catalog.info(column).comment) == (comment, comment)
