"""Buffers of IBM's CLI library become Arrow columns: times of day 24, numbers, texts in two encodings, lengths."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.db2.cli import columns
from tailrace.connectors.db2.cli.columns import BUFFERS, ResultColumn, longest, room
from tailrace.connectors.db2.cli.library import NULL_DATA, Db2Error
from tailrace.connectors.db2.types import times

CHAR, BINARY, GRAPHIC, CLOB, BLOB, DBCLOB = 12, -3, -96, -99, -98, -350


def structs(kind: int, *rows: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.array(list(rows), columns._STRUCTS[kind][1])


def test_the_end_of_a_day_is_the_beginning_of_the_next_one() -> None:
    found = columns._timestamps(
        structs(93, (2020, 1, 1, 24, 0, 0, 0), (1, 1, 1, 0, 0, 0, 999_999_999), (9999, 12, 31, 23, 59, 59, 1000)),
        np.array([16, 16, 16], np.int32),
    )
    assert found.to_pylist() == [
        datetime(2020, 1, 2),
        datetime(1, 1, 1, 0, 0, 0, 999_999),
        datetime(9999, 12, 31, 23, 59, 59, 1),
    ]


def test_the_end_of_a_day_in_texts() -> None:
    given = pa.array(["2020-12-31-24.00.00.000000000000", "2018-06-20-15.13.16.945104123456", None])
    micros, rest = times._parts(given)
    assert micros.cast(pa.timestamp("us")).to_pylist() == [
        datetime(2021, 1, 1),
        datetime(2018, 6, 20, 15, 13, 16, 945_104),
        None,
    ]
    assert rest.to_pylist() == [0, 123, None]
    assert times._times(pa.array(["24.00.00", "23:59:59"])).to_pylist() == [time(0), time(23, 59, 59)]


def test_days_and_times() -> None:
    lengths = np.array([6, NULL_DATA, 6], np.int32)
    days = structs(91, (1970, 1, 1), (0, 0, 0), (1582, 10, 15))
    assert columns._dates(days, lengths).to_pylist() == [date(1970, 1, 1), None, date(1582, 10, 15)]
    clocks = structs(92, (24, 0, 0), (99, 99, 99), (23, 59, 59))
    assert columns._times(clocks, lengths).to_pylist() == [time(0), None, time(23, 59, 59)]


def buffer(values: list[bytes | None], width: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    filled = np.full((len(values), width), 0x7F, np.uint8)
    for row, value in enumerate(values):
        filled[row, : len(value or b"")] = np.frombuffer(value or b"", np.uint8)
    lengths = [NULL_DATA if value is None else len(value) for value in values]
    return filled, np.array(lengths, np.int32)


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=6))
def test_texts_in_both_encodings(values: list[str | None]) -> None:
    utf8 = buffer([None if each is None else each.encode() for each in values], 33)
    wide = buffer([None if each is None else each.encode("utf-16-le") for each in values], 34)
    assert columns._variable(ResultColumn("c", CHAR, 8, 0), *utf8).to_pylist() == values
    assert columns._variable(ResultColumn("c", GRAPHIC, 8, 0), *wide).to_pylist() == values


def test_half_a_surrogate_pair_is_replaced() -> None:
    pair, half = "😀".encode("utf-16-le"), b"\x3d\xd8"
    values = buffer([half, pair, pair[2:] + b"a\x00", b"a\x00" + half, pair[2:]], 8)
    found = columns._variable(ResultColumn("c", GRAPHIC, 8, 0), *values).to_pylist()
    assert found == ["\ufffd", "😀", "\ufffda", "a\ufffd", "\ufffd"]


def test_a_value_that_has_grown_is_no_silent_cut() -> None:
    filled, lengths = buffer([b"abc"], 4)
    assert columns._variable(ResultColumn("c", CLOB, 1, 0), filled, lengths).to_pylist() == ["abc"]
    for length in (4, 400, -4):  # the last one is a length that is not known
        with pytest.raises(Db2Error, match="has grown") as caught:
            columns._variable(ResultColumn("c", CLOB, 1, 0), filled, np.array([length], np.int32))
        assert caught.value.state == "01004"


def test_large_columns_are_measured_before_they_are_read() -> None:
    given = [ResultColumn("id", 4, 10, 0), ResultColumn("", CLOB, 2**31 - 1, 0), ResultColumn("b", BLOB, 9, 0)]
    assert longest("SELECT x", given) == (
        "SELECT MAX(LENGTH(c1)), MAX(LENGTH(c2)) FROM (SELECT x) AS wanted (c0, c1, c2)"
    )
    assert longest("SELECT x", given[:1]) is None
    assert [room(ResultColumn("", kind, 9, 0), 10) for kind in (CLOB, BLOB, DBCLOB)] == [40, 10, 20]
    assert BUFFERS == 16 << 20
