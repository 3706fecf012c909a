"""What of sys.partitions says that a table's rows were switched with another table's, and what does not."""

from __future__ import annotations

import pytest

from tailrace.connectors.sqlserver.structures import StructureTable, TablePartition, switched
from tailrace.model.differences import differences
from tailrace.model.structure import Stored, Structure


def why(before: list[TablePartition], now: list[TablePartition], *, is_allowed: bool = True) -> str:
    first, second = (Structure("7", {"id": "1"}, **switched(is_allowed, parts)) for parts in (before, now))
    return "; ".join(differences(Stored.of(first), second).why)


@pytest.mark.parametrize(
    ("before", "now", "is_told"),
    [
        (TablePartition("a", 1, True), TablePartition("b", 1, False), True),  # switched out
        (TablePartition("a", 1, False), TablePartition("b", 1, True), True),  # switched in
        (TablePartition("a", 1, True), TablePartition("b", 1, True), False),  # rebuilt
        (TablePartition("a", 1, True), TablePartition("a", 1, False), False),  # deleted
        (TablePartition("a", 1, False), TablePartition("a", 1, True), False),  # inserted
    ],
)
@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_table_without_partitions(
    before: TablePartition, now: TablePartition, is_told: bool, is_allowed: bool
) -> None:
    """Nothing forbids to switch it, whatever its capture instance says."""
    assert bool(why([before], [now], is_allowed=is_allowed)) is is_told


@pytest.mark.parametrize(
    ("now", "is_told"),
    [
        ([TablePartition("a", 1, True), TablePartition("c", 2, False)], True),  # switched out
        ([TablePartition("a", 1, True), TablePartition("c", 2, True)], True),  # out and in again, or rebuilt
        ([TablePartition("a", 1, True), TablePartition("b", 2, False)], False),  # deleted
        ([TablePartition("a", 1, True), TablePartition("d", 2, False), TablePartition("b", 3, True)], False),  # SPLIT
    ],
)
def test_a_table_with_partitions(now: list[TablePartition], is_told: bool) -> None:
    before = [TablePartition("a", 1, True), TablePartition("b", 2, True)]
    assert bool(why(before, now)) is is_told
    assert why(before, now, is_allowed=False) == ""


def test_a_column_that_was_excluded_and_is_captured_again() -> None:
    table = StructureTable("7", {"id": "1", "v": "2"})
    before, now = table.described(["id"]), table.described(["id", "v"])
    assert differences(Stored.of(before), now).values == ("the column v was not captured before",)
    assert differences(Stored.of(now), before).dropped == ("v",)
