"""Decimals in base64: values of every number of bytes, and beginnings of rows side by side."""

from __future__ import annotations

import base64
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.model.arrow import beginnings
from tailrace.model.text.binary import shortest, unscaled_base64

EXACT = Context(prec=40)
EDGES = [sign * 2 ** (8 * size - 1) + by for size in range(1, 9) for sign in (1, -1) for by in (-1, 0, 1)]


@given(st.lists(st.none() | st.integers(-(2**48), 2**48) | st.sampled_from(EDGES) | st.just(10**30)), st.integers(0, 3))
@example([*EDGES, None], 1)
@example([None, 2**47 - 1, -(2**47), 0, None], 1)
def test_decimals_in_base64(numbers: list[int | None], skipped: int) -> None:
    decimals = [None if number is None else EXACT.scaleb(Decimal(number), -2) for number in numbers]
    found = unscaled_base64(pa.array(decimals, pa.decimal128(38, 2)).slice(skipped))
    found.validate(full=True)
    expected = [None if number is None else base64.b64encode(shortest(number)).decode() for number in numbers]
    assert found.to_pylist() == expected[skipped:]


@given(st.lists(st.binary(max_size=5), max_size=6))
def test_beginnings_of_rows(rows: list[bytes]) -> None:
    matrix = np.frombuffer(b"".join(row.ljust(7, b"x") for row in rows), np.uint8).reshape(-1, 7)
    assert beginnings(matrix, np.array([len(row) for row in rows], np.int32)).to_pylist() == rows
