"""Bytes of rows as matrices: short values of neighbouring fields are put side by side before records are joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.events.parts import Parts, flat
from tailrace.model.arrow import LARGEST, Octets, are_equal, matrix_of, side_by_side

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

# To join a piece costs 10 ns a row, to copy it into another 2 ns and 0.1 ns a byte, or 0.4 ns if some may be left out.
_WIDEST, _WIDEST_SHAPED, _MOST_SHAPES = 200, 48, 256
_BITS, _LONGEST = 7, 10  # of a byte of a varint; the bytes of the longest


@dataclass(frozen=True)
class Block:
    """Bytes of rows: a matrix of as many rows. Its shape says which bytes of a row are kept.

    A shape has a flag for each byte. `shape` has the place of each row's in `shapes`; None if there is one.
    """

    octets: Octets
    shapes: Bools
    shape: Integers | None = None

    @property
    def width(self) -> int:
        """The bytes of a row, kept or not."""
        return int(self.octets.shape[1])

    def take(self, rows: Integers) -> Block:
        """The bytes of these rows."""
        return Block(self.octets.take(rows, 0), self.shapes, None if self.shape is None else self.shape.take(rows))

    def where(self, valid: Bools, other: bytes) -> Block:
        """The bytes of the rows that are valid, of others the byte `other`."""
        octets = self.octets.copy()
        octets[:, 0] = np.where(valid, octets[:, 0], np.uint8(other[0]))
        shape = np.where(valid, 0 if self.shape is None else self.shape, len(self.shapes))
        return Block(octets, np.vstack([self.shapes, np.arange(self.width) < 1]), shape)

    def array(self) -> pa.Array:
        """The bytes as a binary array."""
        ends = np.arange(len(self.octets) + 1) * self.width
        if self.shape is None:
            return binary(ends, self.octets)
        np.cumsum(self.shapes.sum(1).take(self.shape), out=ends[1:])
        return binary(ends, self.octets[self.shapes.take(self.shape, 0)])


Piece: TypeAlias = "bytes | Block | pa.Array"
Pieces: TypeAlias = "list[Piece]"


def binary(offsets: Integers, data: Octets) -> pa.Array:
    """A binary array of these bytes, a large one where it must be."""
    large = int(offsets[-1]) > LARGEST
    places = offsets if large else offsets.astype(np.int32)
    buffers = [None, pa.py_buffer(places), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary() if large else pa.binary(), len(offsets) - 1, buffers)


def settled(pieces: Iterable[Piece]) -> Parts:
    """The pieces as constants and binary columns, as few as it is worth."""
    parts: Parts = []
    run: list[bytes | Block] = []
    width, shapes = 0, 1
    for piece in pieces:
        if not isinstance(piece, bytes | Block):
            parts += [*_merged(run), piece]
            run, width, shapes = [], 0, 1
            continue
        size, more = (len(piece), 1) if isinstance(piece, bytes) else (piece.width, len(piece.shapes))
        width, shapes = width + size, shapes * more
        if width > (_WIDEST if shapes == 1 else _WIDEST_SHAPED) or shapes > _MOST_SHAPES:
            parts += _merged(run)
            run, width, shapes = [], size, more
        if run and isinstance(piece, bytes) and isinstance(run[-1], bytes):
            run[-1] += piece
        else:
            run.append(piece)
    return flat(*parts, *_merged(run))


def short(values: pa.Array) -> bytes | Block | None:
    """Texts or bytes without nulls as a constant where all are equal, as a block if they are short and of one size."""
    matrix = matrix_of(values)
    if matrix is None:
        return None
    if are_equal(matrix):
        return bytes(matrix[0])
    return _whole(matrix) if matrix.shape[1] <= _WIDEST else None


def fixed(values: npt.NDArray[Any], before: bytes = b"") -> Block:
    """Values of one size, each behind the bytes of `before`."""
    octets = values.view(np.uint8).reshape(len(values), values.itemsize)
    return _whole(side_by_side([before, octets], len(values)) if before else octets)


def varints(numbers: Integers, before: bytes = b"") -> Block:
    """Zigzag varints, as Avro writes int and long, each behind the bytes of `before`."""
    unsigned = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    longest = _size(unsigned.max(initial=np.uint64(0)))
    shortest = _size(unsigned.min(initial=np.uint64(2**64 - 1))) if len(numbers) else longest
    if longest == 1:
        return fixed(unsigned.astype(np.uint8), before)
    octets = side_by_side([before, _spread(unsigned, longest)], len(numbers))
    more, shapes = _marks(len(before), shortest, longest)
    shape = np.zeros(len(numbers), np.int64)
    for size in range(shortest, longest):
        shape += unsigned >= np.uint64(1 << _BITS * size)
    octets |= more.take(shape, 0)
    return Block(octets, shapes, shape) if shortest < longest else _whole(octets)


def varint(number: int) -> bytes:
    """One number as `varints` writes it."""
    unsigned, octets = number << 1 if number >= 0 else ~(number << 1), bytearray()
    while unsigned >> _BITS:
        octets.append(unsigned & 0x7F | 0x80)
        unsigned >>= _BITS
    octets.append(unsigned)
    return bytes(octets)


def _merged(run: Sequence[bytes | Block]) -> Parts:
    """One part of a run of pieces."""
    blocks = [piece for piece in run if isinstance(piece, Block)]
    if not blocks or len(run) == 1:
        return [piece if isinstance(piece, bytes) else piece.array() for piece in run]
    octets = side_by_side([piece if isinstance(piece, bytes) else piece.octets for piece in run], len(blocks[0].octets))
    if all(block.shape is None for block in blocks):
        return [_whole(octets).array()]
    # Each shape of the first with each of the next.
    shapes, shape = _all(0), np.zeros(1, np.int64)
    for piece in run:
        more, place = (_all(len(piece)), None) if isinstance(piece, bytes) else (piece.shapes, piece.shape)
        shapes = np.hstack([shapes.repeat(len(more), 0), np.tile(more, (len(shapes), 1))])
        shape = shape if place is None else shape * len(more) + place
    return [Block(octets, shapes, shape).array()]


def _whole(octets: Octets) -> Block:
    """A block of rows of one size."""
    return Block(octets, _all(octets.shape[1]))


@lru_cache(maxsize=_WIDEST)
def _all(width: int) -> Bools:
    return np.ones((1, width), np.bool_)


def _size(unsigned: np.uint64) -> int:
    """The bytes of a varint."""
    return max(1, -(-int(unsigned).bit_length() // _BITS))


@lru_cache(maxsize=256)
def _marks(lead: int, shortest: int, longest: int) -> tuple[Octets, Bools]:
    """Of varints of each size, behind so many bytes: the bits that say that more bytes follow, and the shape."""
    places, sizes = np.arange(-lead, longest), np.arange(shortest, longest + 1)[:, None]
    return np.where((places >= 0) & (places < sizes - 1), 0x80, 0).astype(np.uint8), places < sizes


def _spread(unsigned: npt.NDArray[np.uint64], longest: int) -> Octets:
    """Seven bits a byte, the lowest first: halves are moved apart in all numbers at once, then the halves of these."""
    item = next(size for size in (2, 4, 8, _LONGEST) if size >= longest)
    spread = unsigned.astype(f"<u{min(item, 8)}")
    half = spread.itemsize // 2
    while half:
        low = sum(((1 << _BITS * half) - 1) << 16 * half * lane for lane in range(spread.itemsize // 2 // half))
        high = spread.dtype.type(low << _BITS * half)
        spread = spread & spread.dtype.type(low) | (spread & high) << spread.dtype.type(half)
        half //= 2
    octets = spread.view(np.uint8).reshape(-1, spread.itemsize)
    if longest <= spread.itemsize:
        return octets[:, :longest]
    last = (unsigned >> np.uint64(_BITS * 8)).astype(np.uint8)
    pair = np.stack([last & np.uint8(0x7F), last >> np.uint8(_BITS)], axis=1)
    return side_by_side([octets, pair], len(unsigned))[:, :longest]
