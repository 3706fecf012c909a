"""Markers of a snapshot's first and last rows."""

from __future__ import annotations

from tailrace.connectors.change_tables.moment import Moment
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.snapshots import Place
from tailrace.connectors.sql_tables.rows import Split
from tailrace.connectors.sql_tables.splits import SplitPlanner
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

CONFIG = resolve({"database.hostname": "h", "database.names": "a,b", "topic.prefix": "server1"})
MOMENT = Moment(Reading.of({}), 0, "s")


class Planned(SplitPlanner):
    """Plans a split for each table without asking a server."""

    def __init__(self, *tables: str, empty: tuple[str, ...] = ()) -> None:
        self.config, self._empty = CONFIG, empty
        self._listed = [TableId(*name.split("."), DATABASE_SCHEMA_TABLE) for name in tables]

    def _tables(self, wanted: object, place: Place | None) -> list[TableId]:
        return [each for each in self._listed if place is None or str(each) in place.left]

    def _of_table(self, moment: Moment, table: TableId, resumed: Place | None) -> list[Split]:
        return [Split(moment, table, last="last_in_data_collection")]

    def _has_rows(self, split: Split) -> bool:
        return str(split.table) not in self._empty


def markers(planner: SplitPlanner, place: Place | None = None) -> list[tuple[str | None, str | None]]:
    return [(split.first, split.last) for split in planner.plan(MOMENT, None, place)]


def test_each_database_has_a_first_and_a_last_row() -> None:
    planner = Planned("a.dbo.t", "a.dbo.u", "b.dbo.t", "b.dbo.u", empty=("b.dbo.u",))
    assert markers(planner) == [
        ("first", "last_in_data_collection"),
        ("first_in_data_collection", "last"),
        ("first", "last"),
        ("first_in_data_collection", "last_in_data_collection"),
    ]


def test_a_snapshot_that_resumes_in_a_database_has_had_its_first_row() -> None:
    planner = Planned("a.dbo.t", "a.dbo.u", "b.dbo.t")
    found = markers(planner, Place(("a.dbo.u", "b.dbo.t"), ("5",), "s"))
    assert found == [(None, "last"), ("first", "last")]


class Asked:
    """A connection whose SELECTs find nothing, and which keeps them."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def rows(self, statement: str) -> list[object]:
        self.statements.append(statement)
        return []


def test_a_user_supplied_select_may_find_no_last_row() -> None:
    planner = SplitPlanner.__new__(SplitPlanner)
    planner.dialect, asked = DIALECT, Asked()
    planner.connection = asked  # type: ignore[assignment]
    table = TableId("a", "dbo", "t", DATABASE_SCHEMA_TABLE)
    assert not planner._has_rows(Split(MOMENT, table, select="SELECT n FROM dbo.t ORDER BY n"))
    assert asked.statements == ["SELECT TOP 1 1 FROM (SELECT n FROM dbo.t ORDER BY n OFFSET 0 ROWS) AS chosen"]
