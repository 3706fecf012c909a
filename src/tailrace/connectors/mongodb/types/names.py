"""Finds elements by name: maps each of many elements to one of the wanted names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tailrace.connectors.mongodb.types.layout import ABSENT, Buffer, Ints, Values
from tailrace.connectors.mongodb.types.walk import Elements

_BELOW = np.array([(1 << 8 * count) - 1 for count in range(8)] + [2**64 - 1], np.uint64)  # masks of the lowest bytes
Words = npt.NDArray[np.uint64]


class Names:
    """Wanted names, looked up by a hash of their words of eight bytes and then compared as a whole."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        raw = [name.encode() for name in self.names]
        self._lengths = np.array([len(name) for name in raw], np.int64)
        self._count = max((len(name) + 7) // 8 for name in raw) if raw else 0
        padded = b"".join(name.ljust(8 * self._count, b"\0") for name in raw)
        self._words = np.frombuffer(padded, np.uint64).reshape(len(raw), self._count)
        self._bits = 2 * len(raw).bit_length() + 4
        self._choose_hash()

    def columns(self, values: Values, elements: Elements) -> list[Values]:
        """For each name the elements that have it, a row for each document; of equal names the last one counts."""
        return [column(values, elements, places) for places in self.places(values.buffer, elements)]

    def places(self, buffer: Buffer, elements: Elements) -> list[Ints]:
        """For each name which elements have it."""
        numbers = self.find(buffer, elements)
        numbers = numbers.astype(np.int16) if len(self.names) < 1 << 15 else numbers  # sorted in one pass
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(len(self.names) + 1))
        return [order[first:last] for first, last in pairwise(bounds.tolist())]

    def find(self, buffer: Buffer, elements: Elements) -> Ints:
        """The number of each element's name among the wanted ones, -1 for another name."""
        lengths = elements.name_ends - elements.names
        hashes = self._first(lengths)
        words = []
        for number in range(self._count):
            word, longer = np.zeros(len(lengths), np.uint64), np.flatnonzero(lengths > 8 * number)
            left = np.minimum(lengths[longer] - 8 * number, 8)
            word[longer] = buffer.uint64[elements.names[longer] + 8 * number] & _BELOW[left]
            hashes = self._mixed(hashes, word)
            words.append(word)
        numbers = self._slots[self._slot(hashes)]
        same = (numbers >= 0) & (self._lengths[numbers] == lengths) if self.names else np.zeros(len(lengths), np.bool_)
        for number, word in enumerate(words):
            same &= self._words[numbers, number] == word
        return np.where(same, numbers, -1)

    def _choose_hash(self) -> None:
        """A multiplier under which the wanted names, which differ, have different hashes."""
        random = np.random.default_rng(0)
        slots = np.zeros(2, np.int64)
        while len(np.unique(slots)) < len(slots):
            self._multiplier = np.uint64(int(random.integers(2**63)) | 1)
            hashes = self._first(self._lengths)
            for number in range(self._count):
                hashes = self._mixed(hashes, self._words[:, number])
            slots = self._slot(hashes)
        self._slots = np.full(1 << self._bits, -1, np.int64)
        self._slots[slots] = np.arange(len(slots))

    def _first(self, lengths: Ints) -> Words:
        """Lengths mixed before the first word is: "" and "\\x01" would have equal hashes under every multiplier."""
        return lengths.astype(np.uint64) * self._multiplier

    def _mixed(self, hashes: Words, words: Words) -> Words:
        return (hashes ^ words) * self._multiplier

    def _slot(self, hashes: Words) -> Ints:
        slots: Ints = ((hashes * self._multiplier) >> np.uint64(64 - self._bits)).astype(np.int64)
        return slots


def column(values: Values, elements: Elements, places: Ints) -> Values:
    """Elements at these places, a row for each document that has one; of several in a document the last one counts."""
    rows = np.searchsorted(elements.firsts, places, side="right") - 1
    kinds, starts = np.full(len(values), ABSENT, np.uint8), np.zeros(len(values), np.int64)
    kinds[rows], starts[rows] = elements.kinds[places], elements.starts[places]
    return Values(values.buffer, kinds, starts)
