"""Hashes and orders that Java was seen to have."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.javalike.hashes import map_order, number_map_order, set_order, text_hash


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", 2147483648),
        ("é", 233),
        ("\U0001f600", 1772899),
        ("Aa", 2112),
        ("BB", 2112),
    ],
)
def test_hashes_are_javas(text: str, number: int) -> None:
    assert text_hash(text) == number


def test_a_hash_map_and_a_hash_set_differ_in_their_buckets() -> None:
    keys = [f"key{number}" for number in range(13)]
    in_map = [1, 2, 0, 5, 6, 3, 4, 9, 7, 8, 11, 10, 12]
    assert map_order(keys) == set_order(keys) == [f"key{number}" for number in in_map]
    assert map_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert map_order(["Aa", "BB"]) == ["Aa", "BB"]


def test_numbers_of_several_maps() -> None:
    keys = np.array([1, 3, 5, 2, 16])
    assert keys[number_map_order(keys, np.array([3, 0, 2]))].tolist() == [1, 5, 3, 16, 2]
