"""Leaves one of the elements that have one name in a document: the last value, at the place of the first.

So a Java driver reads a document into a map, and so do most drivers; a server stores what it is sent. Names that come
again are rare and are looked for in all documents, by a table of hashes: 30 ns an element, half of what the walk takes.
Documents of common shapes (shapes.py) are not looked through.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tailrace.connectors.mongodb.types.layout import ARRAY, Buffer, Ints, Values
from tailrace.connectors.mongodb.types.strings import byte_slices
from tailrace.connectors.mongodb.types.walk import Elements

_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
_BELOW = np.array([(1 << 8 * count) - 1 for count in range(8)] + [2**64 - 1], np.uint64)  # masks of the lowest bytes


def once(values: Values, elements: Elements) -> Elements:
    """The elements of these documents, each name once in a document; items of arrays have no names."""
    rows = elements.rows
    some = _suspects(values, elements, rows)
    if not some.size:
        return elements
    texts = byte_slices(values.buffer, elements.names[some], elements.name_ends[some]).dictionary_encode()
    names = texts.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, firsts, groups = np.unique(rows[some] * (names.max() + 1) + names, return_index=True, return_inverse=True)
    lasts = np.empty(len(firsts), np.int64)
    lasts[groups] = np.arange(len(some))
    order, stays = np.arange(len(elements)), np.ones(len(elements), np.bool_)
    stays[some] = False
    stays[some[firsts]] = True
    order[some[firsts]] = some[lasts]
    kept = order[stays]
    counts = np.bincount(rows[stays], minlength=len(values))
    return Elements(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        elements.kinds[kept],
        elements.names[kept],
        elements.name_ends[kept],
        elements.starts[kept],
    )


def _suspects(values: Values, elements: Elements, rows: Ints) -> Ints:
    """Elements that may have the name of another one of their document: all that do, and few others, in order."""
    is_array = values.kinds == ARRAY
    left = np.flatnonzero(~is_array[rows]) if is_array.any() else np.arange(len(elements))
    keys = _keys(values.buffer, elements, rows)
    suspects: list[Ints] = []
    while len(left) > 1:
        # Of those that share a slot the last one stays in it. The others have its key, or are looked at again.
        numbers = np.arange(len(left), dtype=np.int32)
        slots = (keys[left] >> np.uint64(64 - (4 * len(left)).bit_length())).astype(np.int64)
        table = np.empty(int(slots.max()) + 1, np.int32)
        table[slots] = numbers
        winners = table[slots]
        losers = np.flatnonzero(winners != numbers)
        others = left[winners[losers]]
        is_equal = keys[left[losers]] == keys[others]
        suspects += [left[losers[is_equal]], others[is_equal]]
        left = left[losers[~is_equal]]
    return np.unique(np.concatenate(suspects)) if suspects else left[:0]


def _keys(buffer: Buffer, elements: Elements, rows: Ints) -> npt.NDArray[np.uint64]:
    """A hash of each element's row and name. Names that differ in their middle alone have one."""
    lengths = elements.name_ends - elements.names
    words = buffer.uint64[elements.names] & _BELOW[np.minimum(lengths, 8)]
    long = np.flatnonzero(lengths > 8)
    if long.size:
        words[long] ^= buffer.uint64[elements.name_ends[long] - 8] * _MULTIPLIERS[0]
    keys: npt.NDArray[np.uint64] = (words ^ rows.astype(np.uint64) * _MULTIPLIERS[1]) * _MULTIPLIERS[2]
    keys ^= (keys >> np.uint64(32)) ^ lengths.astype(np.uint64)
    keys *= _MULTIPLIERS[0]
    return keys
