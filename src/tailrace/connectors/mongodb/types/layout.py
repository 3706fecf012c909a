"""BSON's layout: kinds of values, their sizes, and a buffer that is read at many offsets at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tailrace.errors import DecodeError

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

# What a type byte says. END closes a document or array; a `Values` entry with it has no value.
END = ABSENT = 0x00
DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, UNDEFINED, OBJECT_ID, BOOLEAN, DATE, NULL, REGEX = range(0x01, 0x0C)
DB_POINTER, CODE, SYMBOL, CODE_WITH_SCOPE, INT32, TIMESTAMP, INT64, DECIMAL128 = range(0x0C, 0x14)
MAX_KEY, MIN_KEY = 0x7F, 0xFF

# A value has FIXED[kind] bytes, and as many more as the int32 at its start says where COUNTED[kind] is 1.
# A regular expression has no size: it ends with the second zero byte.
FIXED = np.full(256, -(1 << 40), np.int64)
COUNTED = np.zeros(256, np.int64)
_SIZES = {DOUBLE: 8, UNDEFINED: 0, OBJECT_ID: 12, BOOLEAN: 1, DATE: 8, NULL: 0, REGEX: 0, INT32: 4, TIMESTAMP: 8}
_SIZES |= {INT64: 8, DECIMAL128: 16, MIN_KEY: 0, MAX_KEY: 0, END: 0}
_COUNTED = {STRING: 4, DOCUMENT: 0, ARRAY: 0, BINARY: 5, DB_POINTER: 16, CODE: 4, SYMBOL: 4, CODE_WITH_SCOPE: 0}
for _kind, _size in {**_SIZES, **_COUNTED}.items():
    FIXED[_kind] = _size
    COUNTED[_kind] = _kind in _COUNTED

PADDING = 16  # zero bytes after the documents, so that eight bytes can be read at every place
_ONES, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_ONE = np.uint64(1)


class Buffer:
    """Bytes that are read as numbers at any offset: `buffer.int32[places]`."""

    def __init__(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        self.data = b"".join([*parts, bytes(PADDING)])
        self.size = len(self.data) - PADDING
        self.uint8: Bytes = np.frombuffer(self.data, np.uint8)
        self.int32: npt.NDArray[np.int32] = self._overlapping("<i4")
        self.uint32: npt.NDArray[np.uint32] = self._overlapping("<u4")
        self.int64: Ints = self._overlapping("<i8")
        self.uint64: npt.NDArray[np.uint64] = self._overlapping("<u8")
        self.float64: npt.NDArray[np.float64] = self._overlapping("<f8")

    def _overlapping(self, kind: str) -> Any:
        """A view with an element for each byte offset."""
        dtype = np.dtype(kind)
        return np.ndarray((len(self.data) - dtype.itemsize + 1,), dtype, self.data, strides=(1,))

    def zero_from(self, places: Ints) -> Ints:
        """Where the first zero byte from each place on is."""
        words = self.uint64[places]
        if alike := _common_zero(words):
            return places + (alike - 1)
        zero, has_zero = _zero_in_word(words)
        ends = places + zero
        open_ = np.flatnonzero(~has_zero)
        while open_.size:
            zero, has_zero = _zero_in_word(self.uint64[ends[open_]])
            ends[open_] += zero
            open_ = open_[~has_zero]
        return ends


def _zero_in_word(words: Words) -> tuple[Ints, Flags]:
    """The offset of the lowest zero byte in each of these eight bytes, and whether there is one (8 if not)."""
    marks = (words - _ONES) & ~words & _HIGH  # the lowest mark is at the lowest zero byte
    return np.bitwise_count((marks & -marks) - _ONE).astype(np.int64) >> 3, marks != 0


def _common_zero(words: Words) -> int:
    """How many bytes all words begin with alike, up to a first zero byte; 0 if they differ before, or have none.

    Elements that lie in one place of their documents mostly have one name.
    """
    if not len(words):
        return 0
    size = int(words[0]).to_bytes(8, "little").find(0) + 1
    same = np.uint64((1 << 8 * size) - 1)
    return 0 if ((words ^ words[0]) & same).any() else size


@dataclass(frozen=True)
class Values:
    """BSON values, a row each: of what kind each is, and at which byte of the buffer it begins."""

    buffer: Buffer
    kinds: Bytes
    starts: Ints

    @staticmethod
    def documents(buffer: Buffer, starts: Ints) -> Values:
        """The documents that begin there."""
        return Values(buffer, np.full(len(starts), DOCUMENT, np.uint8), starts)

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def present(self) -> Flags:
        """Which rows have a value."""
        flags: Flags = self.kinds != ABSENT
        return flags

    def take(self, rows: Ints) -> Values:
        """The values of these rows."""
        return Values(self.buffer, self.kinds[rows], self.starts[rows])

    def ends(self) -> Ints:
        """Where each value ends, exclusively."""
        return value_ends(self.buffer, self.kinds, self.starts)


def value_ends(buffer: Buffer, kinds: Bytes, starts: Ints) -> Ints:
    """Where values of these kinds, which begin there, end. Raises DecodeError when one leaves the buffer."""
    if len(kinds) and (kinds == kinds[0]).all():
        sizes = np.full(len(kinds), FIXED[kinds[0]])
        if COUNTED[kinds[0]]:
            sizes += buffer.int32[starts]
    else:
        sizes = FIXED[kinds] + COUNTED[kinds] * buffer.int32[starts]
    ends: Ints = starts + sizes
    expressions = np.flatnonzero(kinds == REGEX)
    if expressions.size:
        options = buffer.zero_from(starts[expressions]) + 1
        ends[expressions] = buffer.zero_from(options) + 1
    if sizes.size and (sizes.min() < 0 or ends.max() > buffer.size):
        wrong = int(np.flatnonzero((sizes < 0) | (ends > buffer.size))[0])
        raise broken(buffer, int(starts[wrong]), f"a value of type 0x{int(kinds[wrong]):02x}")
    return ends


def broken(buffer: Buffer, place: int, what: str) -> DecodeError:
    """The error about bytes that are no BSON."""
    nearby = buffer.data[max(place - 24, 0) : place + 24].hex(" ")
    return DecodeError(
        f"BSON that cannot be read: {what} at byte {place} of {buffer.size} does not fit (nearby: {nearby})",
        remedy="report it with the server's version; db.collection.validate({full: true}) looks for damaged documents",
    )
