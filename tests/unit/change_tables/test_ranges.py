"""The parts of a range: what tasks read side by side."""

from __future__ import annotations

import pytest

from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.ranges import ROWS, LogRange
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.sql_tables.tables import Described
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE


def instance(table: str, number: int = 1, database: str = "shop") -> Instance:
    id_ = TableId(database, "dbo", table, DATABASE_SCHEMA_TABLE)
    return Instance(f"{table}{number}", id_, number, 0, start="1", changes=f"{table}{number}_CT")


def parts(**rows: int) -> list[list[str]]:
    """The tables of each part."""
    wanted = LogRange(LsnPosition.of({}), LsnPosition.of({}), {instance(table): count for table, count in rows.items()})
    return [[each.table.table for each in part.instances] for part in wanted.parts()]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"a": 1, "b": 2, "c": 3}, [["a", "b", "c"]]),
        ({"a": ROWS, "b": ROWS}, [["a"], ["b"]]),
        ({"c": ROWS, "b": 10 * ROWS, "a": ROWS}, [["a"], ["b"], ["c"]]),
        ({"a": 1, "b": ROWS, "c": 5}, [["a", "b", "c"]]),
        ({"a": ROWS, "b": 0, "c": ROWS - 1, "d": 1, "e": ROWS - 1}, [["a"], ["c", "d", "e"]]),
    ],
)
def test_a_part_has_whole_tables_and_enough_rows(rows: dict[str, int], expected: list[list[str]]) -> None:
    assert parts(**rows) == expected


def test_change_tables_of_one_table_are_in_one_part() -> None:
    found = {instance("a", 1): ROWS, instance("b"): ROWS, instance("a", 2): ROWS, instance("a", 1, "other"): ROWS}
    wanted = LogRange(LsnPosition.of({}), LsnPosition.of({}), found)
    assert [[each.name for each in part.instances] for part in wanted.parts()] == [["a1"], ["a1", "a2"], ["b1"]]


def test_a_range_with_a_change_of_structure_stays_whole() -> None:
    found = {instance("a"): ROWS, instance("b"): ROWS}
    told = Described(instance("a").table, (), ())
    for wanted in (
        LogRange(LsnPosition.of({}), LsnPosition.of({}), found, structures=(told,)),
        LogRange(LsnPosition.of({}), LsnPosition.of({}), found, passed=(instance("a"),)),
        LogRange(LsnPosition.of({}), LsnPosition.of({}), found, dropped=(told.id,)),
    ):
        assert wanted.parts() == [wanted]
