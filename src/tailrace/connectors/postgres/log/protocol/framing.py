"""Reads fixed-width fields of many messages at once from one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tailrace.errors import DecodeError

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

# XLogData: 'w', start of the WAL data, current end of WAL, clock; then the output plugin's message.
XLOG_HEADER = 25
# Before each message: the type and length that it has on the wire, left where they are.
GAP = 5
# Fixed-width reads may look past the last message; the bounds are checked afterwards.
PADDING = 8


@dataclass(frozen=True, slots=True)
class Frames:
    """n messages of the output plugin in one buffer: `start` (of the kind byte), `end`, `lsn` and `kind`, each of n."""

    buffer: Bytes
    start: Ints
    end: Ints
    lsn: Ints
    kind: Bytes

    def __len__(self) -> int:
        return len(self.start)

    def select(self, rows: npt.NDArray[np.intp] | slice) -> Frames:
        """Some of the messages, over the same buffer."""
        return Frames(self.buffer, self.start[rows], self.end[rows], self.lsn[rows], self.kind[rows])

    def payload(self, row: int) -> bytes:
        """One message's bytes, kind included."""
        return self.buffer[self.start[row] : self.end[row]].tobytes()


@dataclass(frozen=True, slots=True)
class Packed:
    """XLogData messages laid end to end: the length of each as a native unsigned integer, and all bytes, padded.

    GAP bytes come before each message.
    """

    lengths: bytes
    data: bytes | bytearray


def packed(parts: Sequence[Packed]) -> Packed:
    """Consecutive messages in one."""
    if len(parts) == 1:
        return parts[0]
    data = [memoryview(part.data)[:-PADDING] for part in parts]
    return Packed(b"".join(part.lengths for part in parts), b"".join([*data, bytes(PADDING)]))


def frame(messages: Packed) -> Frames:
    """The frames of XLogData messages. Raises DecodeError for a message too short to be one."""
    lengths = np.frombuffer(messages.lengths, np.uintc).astype(np.int64)
    if len(lengths) and lengths.min() <= XLOG_HEADER:
        short = int(lengths.argmin())
        raise DecodeError(f"a replication message of {lengths[short]} bytes is cut short", remedy=CORRUPT)
    buffer = np.frombuffer(messages.data, np.uint8)
    ends = np.cumsum(lengths + GAP)
    begins = ends - lengths
    return Frames(buffer, begins + XLOG_HEADER, ends, int64_at(buffer, begins + 1), buffer[begins + XLOG_HEADER])


CORRUPT = (
    "start the query again; if the error comes back at the same position, the server sends a stream that this version "
    "does not understand: report it with the server's version"
)


def uint_at(buffer: Bytes, at: Ints, width: int) -> Ints:
    """Big-endian unsigned integers of `width` bytes (2, 4 or 8) at each place.

    Each byte of the buffer is taken as the first one of a number: three times as fast as putting bytes together.
    """
    numbers = np.ndarray((max(len(buffer) - width + 1, 0),), f">u{width}", buffer, 0, (1,))
    return numbers[at].astype(np.int64)


def int16_at(buffer: Bytes, at: Ints) -> Ints:
    """Big-endian 16-bit integers at each place."""
    return uint_at(buffer, at, 2)


def uint32_at(buffer: Bytes, at: Ints) -> Ints:
    """Big-endian unsigned 32-bit integers at each place, as int64."""
    return uint_at(buffer, at, 4)


def int64_at(buffer: Bytes, at: Ints) -> Ints:
    """Big-endian signed 64-bit integers at each place."""
    return uint_at(buffer, at, 8)
