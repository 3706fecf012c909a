"""The splits of a snapshot, over cuts that need no server: resume points, markers of rows, notices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from tailrace.connectors.notifications import Notice
from tailrace.connectors.snapshot_ports import Cuts, Snapshots
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.table_split import TableSplit
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace.snapshot.splits import planned

GIVEN = {"database.hostname": "h", "database.names": "a,b", "topic.prefix": "server1"}
CONFIG = resolve(GIVEN)
NOTIFYING = resolve({**GIVEN, "notification.enabled.channels": "log"})
Markers = list[tuple[str | None, str | None]]


class Resumed(TableSplit):
    """A part of a table behind a key."""

    @property
    def resume_point(self) -> SnapshotPlace:
        return SnapshotPlace((), ("5",), self.snapshot)


class Cut(Cuts):
    """Cuts tables, given by name, into so many splits each; `by_database`: each database is a unit.

    `chosen` are those that a SELECT stands for.
    """

    def __init__(self, *, by_database: bool, empty: Sequence[str], splits_none: bool, **tables: int) -> None:
        named = ((name.split("_"), size) for name, size in tables.items())
        self._tables = {TableId(*parts[:3], DATABASE_SCHEMA_TABLE): size for parts, size in named}  # type: ignore[arg-type, call-arg]
        self._by_database, self._empty, self._splits_none = by_database, empty, splits_none
        self.counted: list[str] = []
        self.chosen: list[str] = []

    def tables(self) -> list[TableId]:
        return list(self._tables)

    def to_read(self) -> list[TableId]:
        return list(self._tables)

    def splits(self, table: TableId, resumed: SnapshotPlace | None) -> list[TableSplit]:
        if str(table) in self._empty and self._splits_none:
            return []
        kind = TableSplit if resumed is None or str(table) in self.chosen else Resumed
        return [kind("moment", table, rows=10) for _ in range(self._tables[table])]

    def has_rows(self, split: TableSplit) -> bool:
        return str(split.table) not in self._empty

    def count(self, split: TableSplit) -> int:
        self.counted.append(str(split.table))
        return 7

    def without_rows(self, tables: Sequence[TableId], notices: tuple[Notice, ...]) -> list[Any]:
        return [(*map(str, tables), *(notice.type for notice in notices))] if self._splits_none else []

    def unit(self, table: TableId) -> str:
        return table.database if self._by_database else ""

    def units(self) -> list[str]:
        return ["a", "b"] if self._by_database else [""]


class Server:
    """Has one way to cut."""

    def __init__(
        self, *, by_database: bool = True, empty: Sequence[str] = (), splits_none: bool = False, **tables: int
    ) -> None:
        self.cuts = Cut(by_database=by_database, empty=empty, splits_none=splits_none, **tables)

    def cut(self, config: Any, handle: Any, wanted: Any, place: Any, plan: Callable[[Cuts], list[Any]]) -> list[Any]:
        return plan(self.cuts)

    def plan(self, place: SnapshotPlace | None = None, wanted: Mapping[str, str | None] | None = None) -> list[Any]:
        return list(planned(cast(Snapshots, self), CONFIG, cast(Any, None), wanted, place))

    def markers(self, place: SnapshotPlace | None = None, wanted: Mapping[str, str | None] | None = None) -> Markers:
        return [(split.first, split.last) for split in self.plan(place, wanted)]

    def types(self, place: SnapshotPlace | None = None) -> list[tuple[list[str], list[str]]]:
        found = planned(cast(Snapshots, self), NOTIFYING, cast(Any, None), None, place)
        return [([each.type for each in split.before], [each.type for each in split.after]) for split in found]


def test_each_unit_has_a_first_and_a_last_row() -> None:
    server = Server(a_dbo_t=1, a_dbo_u=1, b_dbo_t=1, b_dbo_u=1, empty=("b.dbo.u",))
    assert server.markers() == [
        ("first", "last_in_data_collection"),
        ("first_in_data_collection", "last"),
        ("first", "last"),
        ("first_in_data_collection", "last_in_data_collection"),
    ]


def test_a_snapshot_that_resumes_in_a_unit_has_had_its_first_row() -> None:
    server = Server(a_dbo_t=1, a_dbo_u=1, b_dbo_t=1)
    place = SnapshotPlace(("a.dbo.u", "b.dbo.t"), ("5",), "s")
    assert server.markers(place) == [(None, "last"), ("first", "last")]
    assert [split.began for split in server.plan(place)] == ["s", None]
    server.cuts.chosen.append("a.dbo.u")
    assert [split.began for split in server.plan(place)] == [None, None], "a SELECT is read from its beginning"


def test_a_table_without_rows_takes_the_first_marker_with_it() -> None:
    server = Server(by_database=False, a_dbo_t=1, a_dbo_u=2, empty=("a.dbo.t",), splits_none=True)
    splits = server.plan()
    assert [(split.first, split.last) for split in splits[:2]] == [("first_in_data_collection", None), (None, "last")]
    assert splits[2:] == [("a.dbo.t",)]


def test_only_the_last_row_is_marked_where_tables_are_not() -> None:
    server = Server(by_database=False, a_dbo_t=2, b_dbo_t=1)
    server.cuts.marks_tables = False
    assert server.markers() == [(None, None), (None, None), (None, "last")]


def test_a_signal_has_its_tables_read_and_a_place_those_that_are_left() -> None:
    server = Server(a_dbo_t=1, a_dbo_u=1, b_dbo_t=1)
    assert [str(split.table) for split in server.plan(None, {"b.dbo.t": None, "x.dbo.t": None})] == ["b.dbo.t"]
    assert server.markers(None, {"b.dbo.t": None}) == [("first", "last")]
    left = SnapshotPlace(("b.dbo.t", "gone.dbo.t", "a.dbo.u"))
    assert [str(split.table) for split in server.plan(left)] == ["b.dbo.t", "a.dbo.u"]


def test_rows_are_counted_where_no_task_reads_all_of_a_table() -> None:
    server = Server(by_database=False, a_dbo_t=1, a_dbo_u=2, b_dbo_t=1)
    server.types()
    assert server.cuts.counted == ["a.dbo.u"]
    server.types(SnapshotPlace(("b.dbo.t",), ("5",), "s"))
    assert server.cuts.counted == ["a.dbo.u", "b.dbo.t"]


@pytest.mark.parametrize("unread", ["a", "b"])
def test_a_unit_without_tables_has_notices_too(unread: str) -> None:
    read = {"a": "b_dbo_t", "b": "a_dbo_t"}[unread]
    ((before, after),) = Server(**{read: 1}).types()  # type: ignore[arg-type]
    nothing, of_table = ["STARTED", "COMPLETED"], ["STARTED", "IN_PROGRESS"]
    assert before == (nothing if unread == "a" else []) + of_table
    assert after == ["TABLE_SCAN_COMPLETED", "COMPLETED"] + (nothing if unread == "b" else [])


def test_a_snapshot_without_any_row_has_its_notices_where_something_can_take_them() -> None:
    empty = Server(by_database=False, a_dbo_t=1, empty=("a.dbo.t",), splits_none=True)
    (found,) = planned(cast(Snapshots, empty), NOTIFYING, cast(Any, None))
    assert found == ("a.dbo.t", "STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED")
    assert Server().plan() == []
