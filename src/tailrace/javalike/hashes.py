"""Computes Java's hash of a text, and the order in which a HashMap or HashSet lists its keys.

The reference engine writes some maps and lists in that order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

_LEAST_BUCKETS = 16  # those of a new HashMap
Integers = npt.NDArray[np.integer[Any]]


@lru_cache(maxsize=10_000)  # maps in rows have the same few keys
def text_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned number of 32 bits."""
    number = 0
    wide = text.encode("utf-16-le", "surrogatepass")
    for unit in text.encode() if text.isascii() else np.frombuffer(wide, "<u2").tolist():
        number = (number * 31 + unit) & 0xFFFFFFFF
    return number


def map_order(keys: list[str]) -> list[str]:
    """The order of a HashMap that the keys were put into: 16 buckets, doubled whenever more than 3/4 are used."""
    buckets = _LEAST_BUCKETS
    while len(keys) > buckets * 3 // 4:
        buckets *= 2
    return _by_bucket(keys, buckets)


def copied_map_order(keys: list[str]) -> list[str]:
    """The order of a HashMap made of a map that lists the keys in this order: it has just room for them."""
    return _by_bucket(keys, 1 << (int(len(keys) / 0.75 + 1) - 1).bit_length())


def sized_map_order(keys: list[str]) -> list[str]:
    """The order of a HashMap made with as many buckets as there are keys, which then grows as they need it."""
    buckets = 1 << (len(keys) - 1).bit_length()
    while len(keys) > buckets * 3 // 4:
        buckets *= 2
    return _by_bucket(keys, buckets)


def set_order(keys: list[str]) -> list[str]:
    """The order of a HashSet made of a collection, which has room for all keys from the start."""
    least = max(len(keys) * 4 // 3 + 1, _LEAST_BUCKETS)
    return _by_bucket(keys, 1 << (least - 1).bit_length())


def _by_bucket(keys: list[str], buckets: int) -> list[str]:
    """The keys by the buckets of a HashMap; those of one bucket stay in their order."""

    def bucket(key: str) -> int:
        number = text_hash(key)
        return (number ^ number >> 16) & (buckets - 1)

    return sorted(keys, key=bucket)


def number_map_order(keys: Integers, lengths: Integers) -> npt.NDArray[np.intp]:
    """Where each key comes from, for the keys of many maps one after another; `lengths` are the maps' sizes.

    Each map begins with as many buckets as it has keys, rounded up to a power of two, and doubles them if 3/4 of them
    are not enough. A small number is its own hash.
    """
    buckets = 1 << np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    buckets = np.where(lengths > buckets * 3 // 4, buckets * 2, buckets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return np.lexsort((keys & (buckets[rows] - 1), rows))
