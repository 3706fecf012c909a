"""Finds the elements of many documents at once.

All documents are walked in step: round n looks at the n-th element of each, by numpy. Where few are left that have
more elements than the others, these are walked one by one.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tailrace.connectors.mongodb.types.layout import (
    ARRAY,
    CODE_WITH_SCOPE,
    COUNTED,
    DOCUMENT,
    END,
    FIXED,
    REGEX,
    Buffer,
    Bytes,
    Flags,
    Ints,
    Values,
    broken,
    value_ends,
)

FEW = 48  # a round costs as much as this many elements one by one
_int32 = struct.Struct("<i").unpack_from
_FIXED, _COUNTED = FIXED.tolist(), COUNTED.tolist()


@dataclass(frozen=True)
class Elements:
    """Elements in the order of their bytes, row by row: those of row r are `firsts[r]` to `firsts[r + 1]`.

    Names are the bytes `names` to `name_ends` of the buffer, without their zero byte.
    """

    firsts: Ints
    kinds: Bytes
    names: Ints
    name_ends: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def rows(self) -> Ints:
        """The row of each element."""
        return np.repeat(np.arange(len(self.firsts) - 1), np.diff(self.firsts))


def is_container(kinds: Bytes) -> Flags:
    """Which kinds have elements."""
    flags: Flags = (kinds == DOCUMENT) | (kinds == ARRAY) | (kinds == CODE_WITH_SCOPE)
    return flags


def members(values: Values) -> Elements:
    """The direct elements of documents, arrays and scopes of codes; other values have none. Raises DecodeError."""
    return _Walk(values).elements()


def _first_elements(buffer: Buffer, kinds: Bytes, starts: Ints) -> Ints:
    """Where the first element of a container is: after its size, and for a code with a scope after the code, too."""
    places = starts + 4
    scoped = np.flatnonzero(kinds == CODE_WITH_SCOPE)
    if scoped.size:
        sizes = buffer.int32[places[scoped]]
        if sizes.min() < 1:
            raise broken(buffer, int(places[scoped[sizes.argmin()]]), "the size of a code")
        places[scoped] += sizes + 8
    return places


class _Walk:
    """One pass over containers. `at` is where the next element is in each that is still open."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.buffer = values.buffer
        self.rows = np.flatnonzero(is_container(values.kinds))
        self.at = _first_elements(values.buffer, values.kinds[self.rows], values.starts[self.rows])
        # Rows, numbers within the row, kinds, names, ends of names, starts: as they are found.
        self.rounds: list[tuple[npt.NDArray[Any], ...]] = []
        self.round = 0

    def elements(self) -> Elements:
        """Walk to the end."""
        while len(self.rows) > FEW:
            self._step()
            self.round += 1
        in_step = not len(self.rows)
        if not in_step:
            self._finish()
        firsts = np.zeros(len(self.values) + 1, np.int64)
        if not self.rounds:
            nothing = np.empty(0, np.int64)
            return Elements(firsts, nothing.astype(np.uint8), nothing, nothing, nothing)
        if in_step and all(len(part[0]) == len(self.values) for part in self.rounds):  # as many elements in each
            columns = [np.stack(parts, axis=1).reshape(-1) for parts in list(zip(*self.rounds, strict=True))[2:]]
            return Elements(np.arange(len(firsts)) * len(self.rounds), *columns)
        rows, numbers, *columns = (np.concatenate(parts) for parts in zip(*self.rounds, strict=True))
        np.cumsum(np.bincount(rows, minlength=len(self.values)), out=firsts[1:])
        places = firsts[rows] + numbers
        in_order = [np.empty_like(column) for column in columns]
        for column, target in zip(columns, in_order, strict=True):
            target[places] = column
        return Elements(firsts, *in_order)

    def _step(self) -> None:
        """Look at one element of each open container."""
        buffer = self.buffer
        if self.at.max() >= buffer.size:
            raise broken(buffer, int(self.at.max()), "an element")
        kinds = buffer.uint8[self.at]
        names = self.at + 1
        closing = kinds == END
        if closing.any():
            self._check_ends(self.rows[closing], names[closing])
            kinds, names, self.rows = kinds[~closing], names[~closing], self.rows[~closing]
            if not len(kinds):
                return
        name_ends = buffer.zero_from(names)
        starts = name_ends + 1
        self.at = value_ends(buffer, kinds, starts)
        self.rounds.append((self.rows, np.full(len(kinds), self.round), kinds, names, name_ends, starts))

    def _check_ends(self, rows: Ints, ends: Ints) -> None:
        starts = self.values.starts[rows]
        wrong = np.flatnonzero(ends != starts + self.buffer.int32[starts])
        if wrong.size:
            raise broken(self.buffer, int(starts[wrong[0]]), "the size of a document")

    def _finish(self) -> None:
        """Walk what is left, one container after another."""
        kinds, places = bytearray(), array("q")
        firsts, ends = [0], []
        for at in self.at.tolist():
            ends.append(self._walk_one(at, kinds, places))
            firsts.append(len(kinds))
        self._check_ends(self.rows, np.array(ends))
        counts = np.diff(firsts)
        rows = np.repeat(self.rows, counts)
        numbers = self.round + np.arange(len(kinds)) - np.repeat(firsts[:-1], counts)
        names, name_ends, starts = np.frombuffer(places, np.int64).reshape(-1, 3).T
        self.rounds.append((rows, numbers, np.frombuffer(kinds, np.uint8), names, name_ends, starts))

    def _walk_one(self, at: int, kinds: bytearray, places: array[int]) -> int:
        """Add the elements of one container from there on: kinds, and where name, its end and value are."""
        data, size = self.buffer.data, self.buffer.size
        while True:
            if at >= size:
                raise broken(self.buffer, at, "an element")
            kind, name = data[at], at + 1
            if kind == END:
                return name
            name_end = data.find(0, name)
            start = name_end + 1
            kinds.append(kind)
            places.extend((name, name_end, start))
            at = self._end_of(kind, start)

    def _end_of(self, kind: int, start: int) -> int:
        """Where a value ends."""
        data = self.buffer.data
        if kind == REGEX:
            end = data.find(0, data.find(0, start) + 1) + 1
        else:
            end = start + _FIXED[kind] + (int(_int32(data, start)[0]) if _COUNTED[kind] else 0)
        if not start <= end <= self.buffer.size:
            raise broken(self.buffer, start, f"a value of type 0x{kind:02x}")
        return end
