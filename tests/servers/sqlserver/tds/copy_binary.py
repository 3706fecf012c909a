"""Splits rows of PostgreSQL's binary COPY format into columns, without a Python object per value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_PADDING = bytes(32)
HEADER_LENGTH = 19


@dataclass(frozen=True)
class Values:
    """One column: where each of its values begins in the bytes of the rows, and how long it is; -1 is null."""

    content: Bytes
    positions: Integers
    lengths: Integers

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def nulls(self) -> NDArray[np.bool_]:
        """Which values are null."""
        return self.lengths < 0

    def fixed(self, width: int) -> Bytes:
        """Values of one width as rows of bytes; what stands for a null means nothing."""
        return windows(self.content, width)[self.positions]

    def integers(self, width: int) -> Integers:
        """Integers of this many bytes."""
        return self.fixed(width).view(f">i{width}").ravel().astype(np.int64)

    def joined(self) -> tuple[Bytes, Integers]:
        """The bytes of all values one after the other, and their lengths, 0 for null."""
        lengths = np.maximum(self.lengths, 0)
        return self.content[spread(self.positions, lengths)], lengths

    def each(self) -> list[bytes | None]:
        """The values as Python objects, for types that are rarely met."""
        raw = self.content.tobytes()
        pairs = zip(self.positions.tolist(), self.lengths.tolist(), strict=True)
        return [None if length < 0 else raw[at : at + length] for at, length in pairs]


def windows(content: Bytes, width: int) -> Bytes:
    """A view of the bytes in which row n holds the bytes from n on."""
    return np.lib.stride_tricks.as_strided(content, (max(len(content) - width + 1, 0), width), (1, 1))


def spread(starts: Integers, lengths: Integers) -> Integers:
    """The index of every byte of ranges that begin at `starts`."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def split(rows: Sequence[bytes | memoryview], columns: int) -> list[Values]:
    """The columns of rows; a row is a count of fields, then length and bytes of each."""
    content = np.frombuffer(b"".join([*rows, _PADDING]), dtype=np.uint8)
    sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    position = np.cumsum(sizes) - sizes + 2
    lengths_at = windows(content, 4)
    result = []
    for _ in range(columns):
        lengths = lengths_at[position].view(">i4").ravel().astype(np.int64)
        position = position + 4
        result.append(Values(content, position, lengths))
        position = position + np.maximum(lengths, 0)
    return result
