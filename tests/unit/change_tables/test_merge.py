"""Rows of change tables: pairs of updates, the order of the log, serial numbers, whole transactions."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.change_tables.changes import (
    AFTER,
    AFTER_ALONE,
    BEFORE,
    DELETED,
    INSERTED,
    STRUCTURE_PLACE,
    ChangeRows,
    in_log_order,
    marks,
    paired,
    whole_transactions,
)
from tailrace.connectors.change_tables.position import LsnPosition, behind
from tailrace.errors import DecodeError, OffsetError

Row = tuple[str, str, int]


def rows(*found: Row) -> ChangeRows:
    """Rows of commit, change and kind, whose image is their number."""
    images = pa.StructArray.from_arrays([pa.array(range(len(found)), pa.int64())], names=["n"])
    return ChangeRows(
        commit=pa.array([row[0] for row in found], pa.string()),
        change=pa.array([row[1] for row in found], pa.string()),
        kind=np.array([row[2] for row in found], np.int64),
        ts_us=pa.array([0] * len(found), pa.int64()),
        images=images,
        mask=pa.array([b""] * len(found), pa.binary()),
    )


def test_an_update_is_one_change() -> None:
    found = paired(rows(("1", "a", INSERTED), ("1", "b", BEFORE), ("1", "b", AFTER), ("2", "c", DELETED)), "t")
    assert found.op.to_pylist() == ["c", "u", "d"]
    assert [each and each["n"] for each in found.before.to_pylist()] == [None, 1, 3]
    assert [each and each["n"] for each in found.after.to_pylist()] == [0, 2, None]
    assert found.rows.tolist() == [1, 2, 1]


def test_an_update_of_one_row_has_no_old_one() -> None:
    found = paired(rows(("1", "a", AFTER_ALONE)), "t")
    assert (found.op.to_pylist(), found.before.to_pylist(), found.rows.tolist()) == (["u"], [None], [1])
    assert found.after.to_pylist() == [{"n": 0}]


@pytest.mark.parametrize(
    "found",
    [
        [("1", "a", BEFORE)],
        [("1", "a", AFTER)],
        [("1", "a", AFTER), ("1", "a", BEFORE)],
        [("1", "a", BEFORE), ("1", "b", AFTER)],
        [("1", "a", 6)],
        [("1", "a", BEFORE), ("1", "a", INSERTED), ("1", "a", AFTER)],
    ],
)
def test_half_an_update_is_an_error(found: list[Row]) -> None:
    with pytest.raises(DecodeError) as caught:
        paired(rows(*found), "shop.dbo.orders")
    assert "shop.dbo.orders, commit 1" in str(caught.value)


def test_changes_of_tables_are_in_the_order_of_commits_and_changes() -> None:
    first = paired(rows(("1", "a", INSERTED), ("2", "d", BEFORE), ("2", "d", AFTER)), "t")
    second = paired(rows(("1", "b", DELETED), ("1", "b", INSERTED), ("2", "c", INSERTED)), "u")
    one, two = in_log_order([first, second], 100)
    order = sorted([*one.order.tolist(), *two.order.tolist()])
    assert order[0] == 100
    assert [order.index(each) for each in one.order] == [0, 4]
    assert [order.index(each) for each in two.order] == [1, 2, 3]
    assert (one.serial.tolist(), two.serial.tolist()) == ([1, 2], [1, 2, 1])


def test_begin_a_structure_both_events_of_a_changed_key_and_end_have_a_place_each() -> None:
    """END was counted before the second event, and had the place of the next BEGIN."""
    found = [(commit, "a", kind) for commit in ("1", "2", "3") for kind in (BEFORE, AFTER)]
    (changes,) = in_log_order([paired(rows(*found), "t")], 10)
    marked = [(row["order"], f"{row['status']} {row['id']}") for row in marks([changes]).to_pylist()]
    for commit, place in zip(changes.commit.to_pylist(), changes.order.tolist(), strict=True):
        events = ((STRUCTURE_PLACE, "structure"), (0, "d"), (1, "c"))
        marked += [(place + behind, f"{event} {commit}") for behind, event in events]
    assert [what for _, what in sorted(marked)] == [
        f"{what} {commit}" for commit in "123" for what in ("BEGIN", "structure", "d", "c", "END")
    ]
    assert len({place for place, _ in marked}) == len(marked)


def test_a_change_that_goes_back_within_its_table_keeps_its_place() -> None:
    (found,) = in_log_order([paired(rows(("1", "b", INSERTED), ("1", "a", INSERTED), ("1", "c", INSERTED)), "t")], 0)
    order = found.order.tolist()
    assert len(order) == 3
    assert all(first < second for first, second in pairwise(order))


Kinds = st.sampled_from([(INSERTED,), (DELETED,), (BEFORE, AFTER)])
Tables = st.lists(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9), Kinds), max_size=12).map(sorted), min_size=1, max_size=4
)


@given(tables=Tables, size=st.integers(1, 5), enough=st.integers(0, 20))
def test_transactions_are_complete_whatever_the_blocks(
    tables: list[list[tuple[int, int, tuple[int, ...]]]], size: int, enough: int
) -> None:
    listed = [
        [(str(commit), f"{table}{change}", kind) for commit, change, kinds in found for kind in kinds]
        for table, found in enumerate(tables)
    ]

    def blocks(found: list[Row]) -> list[ChangeRows]:
        return [rows(*found[start : start + size]) for start in range(0, len(found), size)]

    told: dict[int, list[Row]] = defaultdict(list)
    seen: set[str] = set()
    for block in whole_transactions([iter(blocks(found)) for found in listed], enough):
        commits: set[str] = set()
        for table, each in enumerate(block):
            if each is not None:
                assert len(each)
                commits.update(each.commit.to_pylist())
                told[table] += zip(each.commit.to_pylist(), each.change.to_pylist(), each.kind.tolist(), strict=True)
        assert commits
        assert not seen or min(commits) > max(seen), "a transaction comes in one piece, and in its order"
        seen |= commits
    assert [told[table] for table in range(len(listed))] == listed


NAMES = st.text(min_size=1, max_size=6)


@given(lsns=st.dictionaries(NAMES, st.from_regex(r"[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{4}", fullmatch=True), min_size=1))
def test_a_position_is_read_as_it_was_printed(lsns: dict[str, str]) -> None:
    assert LsnPosition.from_text(LsnPosition.of(lsns).to_text()) == LsnPosition.of(lsns)


def test_positions_are_ordered_by_all_databases() -> None:
    low, high = LsnPosition.of({"a": "1", "b": "1"}), LsnPosition.of({"a": "1", "b": "2"})
    assert low < high
    assert high > low
    assert low <= low
    assert not high < low
    with pytest.raises(OffsetError, match="no position in change tables"):
        LsnPosition.from_text("0/16B3748")


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_rows_of_a_snapshot_have_the_commit_at_its_end(one: bytes, other: bytes) -> None:
    here, there = one.hex(), other.hex()
    assert (there >= behind(here)) == (there > here), "a replica skips commits before that place, and no others"
    assert behind("") < here
