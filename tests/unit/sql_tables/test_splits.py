"""What cutting a table asks the server."""

from __future__ import annotations

from tailrace.connectors.change_tables.moment import Moment
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.sql_tables.rows import Split
from tailrace.connectors.sql_tables.splits import SqlCuts
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE


class Asked:
    """A connection whose SELECTs find nothing, and which keeps them."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def rows(self, statement: str) -> list[object]:
        self.statements.append(statement)
        return []


def test_a_user_supplied_select_may_find_no_last_row() -> None:
    cuts = SqlCuts.__new__(SqlCuts)
    cuts.dialect, asked = DIALECT, Asked()
    cuts.connection = asked  # type: ignore[assignment]
    table = TableId("a", "dbo", "t", DATABASE_SCHEMA_TABLE)
    moment = Moment(LsnPosition.of({}), 0, "s")
    assert not cuts.has_rows(Split(moment, table, select="SELECT n FROM dbo.t ORDER BY n"))
    assert asked.statements == ["SELECT TOP 1 1 FROM (SELECT n FROM dbo.t ORDER BY n OFFSET 0 ROWS) AS chosen"]
