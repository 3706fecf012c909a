"""Hashes of rows: equal for equal values however Arrow holds them, and others for other values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.sinks.replica import digest
from tailrace.sinks.replica.digest import row_hashes, value_hashes

TEXTS = st.text(max_size=40) | st.sampled_from(["", "\0", "\0\0", "a" * 7, "a" * 8, "a" * 9, "a" * 16])
INTS = st.integers(-(2**63), 2**63 - 1)
KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), INTS),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.string(), TEXTS),
    (pa.binary(), st.binary(max_size=40)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.decimal128(38, 6), st.decimals(-(10**20), 10**20, places=6)),
    (pa.list_(pa.string()), st.lists(st.none() | TEXTS, max_size=5)),
    (pa.list_(pa.list_(pa.int64())), st.lists(st.none() | st.lists(INTS, max_size=3), max_size=4)),
    (
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        st.fixed_dictionaries({"x": st.none() | INTS, "y": st.none() | TEXTS}),
    ),
    (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(TEXTS, st.none() | INTS, max_size=4).map(lambda d: list(d.items())),
    ),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_hashes_are_of_values(kind: pa.DataType, values: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.none() | values, max_size=30), st.integers(0, 30), st.integers(0, 30))
    def check(items: list[Any], start: int, size: int) -> None:
        whole = pa.array(items, kind)
        hashes = value_hashes(whole)
        for part in (whole.slice(start, size), pa.array(items[start : start + size], kind)):
            assert value_hashes(part).tolist() == hashes[start : start + size].tolist()
        pieces = pa.chunked_array([whole.slice(0, start), whole.slice(start)], kind)
        assert value_hashes(pieces).tolist() == hashes.tolist()
        plain = [_frozen(item) for item in whole.to_pylist()]
        for left, one in zip(plain, hashes.tolist(), strict=True):
            for right, other in zip(plain, hashes.tolist(), strict=True):
                assert (left == right) == (one == other), (left, right)

    check()


def _frozen(value: Any) -> Any:
    """A value in which the order of a map's entries does not count."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(value, key=repr)
    return value


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | TEXTS, max_size=30))
def test_texts_are_one_however_they_are_held(items: list[str | None]) -> None:
    expected = value_hashes(pa.array(items, pa.string())).tolist()
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert value_hashes(pa.array(items, pa.string()).cast(kind)).tolist() == expected


def test_numbers_that_a_database_holds_equal_are_equal() -> None:
    assert len({*value_hashes(pa.array([0.0, -0.0])).tolist()}) == 1
    odd_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    assert len({*value_hashes(pa.array([math.nan, -math.nan, odd_nan], from_pandas=False)).tolist()}) == 1
    for narrow, wide in (
        (pa.int16(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(38, 2)),
    ):
        values = pa.array([1, None, -3], pa.int16()).cast(narrow)
        assert value_hashes(values).tolist() == value_hashes(values.cast(wide)).tolist()
    assert value_hashes(pa.array([Decimal("1.5")], pa.decimal256(60, 2))) != value_hashes(
        pa.array([Decimal("1.6")], pa.decimal256(60, 2))
    )


def test_long_values_are_hashed_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_LONG", 100)
    items = ["x" * 100, "x" * 101, "y" * 101, None, "", "x" * 101]
    hashes = value_hashes(pa.array(items, pa.string())).tolist()
    assert len(set(hashes)) == 5
    assert hashes[1] == hashes[5]
    assert value_hashes(pa.array(items, pa.string_view()).slice(1)).tolist() == hashes[1:]


def test_a_rows_hash_depends_on_which_column_has_a_value() -> None:
    a, b = pa.array([1, 2, None]), pa.array([2, 1, None])
    assert row_hashes([a, b], 3).tolist() != row_hashes([b, a], 3).tolist()
    assert row_hashes([a, b], 3)[2] != row_hashes([a], 3)[2]
    assert 0 not in row_hashes([a, b], 3).tolist()
    assert row_hashes([pa.array([], pa.string())], 0).tolist() == []
    assert value_hashes(pa.nulls(2)).tolist() == value_hashes(pa.nulls(2, pa.time64("us"))).tolist()
    assert len({*value_hashes(pa.array([dt.time(1), dt.time(2)], pa.time32("s"))).tolist()}) == 2
    lists = pa.array([[1, 2], [1, 3]], pa.list_(pa.int64(), 2))
    assert value_hashes(lists).tolist() == value_hashes(lists.cast(pa.list_(pa.int64()))).tolist()


def test_zeros_are_told_apart_if_wanted() -> None:
    for kind in (pa.float32(), pa.float64(), pa.list_(pa.float64())):
        zeros = pa.array([[0.0], [-0.0]] if pa.types.is_list(kind) else [0.0, -0.0], kind)
        assert len({*value_hashes(zeros).tolist()}) == 1
        assert len({*value_hashes(zeros, signed=True).tolist()}) == 2


def test_small_numbers_of_several_columns_and_items_have_hashes_of_their_own() -> None:
    """Of all rows of three columns, and of all lists of up to three items: places are not mixed as numbers are."""
    numbers = [*range(-2, 9), None]
    rows = list(product(numbers, repeat=3))
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    assert len(set(row_hashes(columns, len(rows)).tolist())) == len(rows)
    lists = [list(items) for length in range(4) for items in product(numbers, repeat=length)]
    for kind, values in (
        (pa.list_(pa.int64()), lists),
        (pa.list_(pa.list_(pa.int64())), [[items] for items in lists] + [[items, items] for items in lists]),
        (pa.list_(pa.string()), [[None if item is None else str(item) for item in items] for items in lists]),
    ):
        assert len(set(value_hashes(pa.array(values, kind)).tolist())) == len(values), kind
