"""A buffer of XLogData messages in the order in which they were received."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tailrace.connectors.postgres.log.protocol.framing import GAP, XLOG_HEADER, Bytes, Ints, int64_at, uint_at
from tailrace.connectors.postgres.log.protocol.pgoutput import BEGIN, COMMIT, MESSAGE, RELATION, TYPE
from tailrace.connectors.postgres.log.protocol.wal import record_start

COPY_DATA, XLOG = b"dw"
_LENGTH = struct.Struct(">I")
_HEAD = XLOG_HEADER + 1
# Of a Message: flags, LSN and the content's length, which stand beside prefix (with its NUL) and content.
_MESSAGE_FRAME = 13
# Of a Commit: flags, the LSN of the commit, then the end of the transaction.
_COMMIT_END = _HEAD + 9


def walk(buffer: bytes | bytearray, size: int) -> Ints:
    """Where whole messages begin (the type byte) in the first `size` bytes, and where the last one ends."""
    bounds = _log_messages(buffer, size)
    return _any_messages(buffer, size) if bounds is None else bounds


def _log_messages(buffer: bytes | bytearray, size: int) -> Ints | None:
    """The bounds if all messages are XLogData of less than 16 MB; None otherwise.

    What looks like a message's first bytes is one if the message before it ends there. 0.04 s a million.
    """
    if size <= GAP:
        return None
    view = np.frombuffer(buffer, np.uint8, size)
    looks = (view[:-GAP] == COPY_DATA) & (view[1 : 1 - GAP] == 0) & (view[GAP:] == XLOG)
    begins = np.flatnonzero(looks)
    ends = begins + 1 + uint_at(view, begins + 1, 4)
    if not len(begins) or begins[0] or not np.array_equal(begins[1:], ends[:-1]):
        return None
    is_whole = int(ends[-1]) <= size
    if is_whole and size - ends[-1] >= GAP:
        return None
    return np.append(begins, ends[-1:]) if is_whole else begins


def _any_messages(buffer: bytes | bytearray, size: int) -> Ints:
    """The bounds, message by message: 0.1 s a million."""
    bounds, length_at = [0], _LENGTH.unpack_from
    at, last = 0, size - GAP
    while at <= last:
        at += 1 + length_at(buffer, at + 1)[0]
        if at > size:
            break
        bounds.append(at)
    return np.array(bounds, np.int64)


@dataclass(frozen=True, slots=True)
class Segment:
    """n messages: `lengths` of their payloads. Before each payload, GAP bytes of `data` are not part of it."""

    lengths: npt.NDArray[np.uintc]
    data: bytes | memoryview

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def begins(self) -> Ints:
        """Where each payload begins."""
        wide = self.lengths.astype(np.int64)
        return np.cumsum(wide + GAP) - wide

    def payload(self, row: int) -> bytes:
        """One message."""
        begin = int(self.begins[row])
        return bytes(self.data[begin : begin + int(self.lengths[row])])

    def cut(self, row: int) -> tuple[Segment, Segment]:
        """The messages before a row, and the others."""
        if row == 0:
            return Segment(self.lengths[:0], b""), self
        at = row * GAP + int(self.lengths[:row].sum(dtype=np.int64))
        data = memoryview(self.data)
        return Segment(self.lengths[:row], data[:at]), Segment(self.lengths[row:], data[at:])

    def select(self, rows: npt.NDArray[np.bool_]) -> Segment:
        """Some of the messages."""
        begins, data = self.begins, memoryview(self.data)
        pieces = [data[begins[row] - GAP : begins[row] + self.lengths[row]] for row in np.flatnonzero(rows)]
        return Segment(self.lengths[rows], b"".join(pieces))

    def kinds(self) -> Bytes:
        """The kind of each message of the output plugin; 0 for one that is cut short, which the worker reports."""
        buffer = np.frombuffer(self.data, np.uint8)
        kinds = buffer[np.minimum(self.begins + XLOG_HEADER, len(buffer) - 1)]
        kinds[self.lengths <= XLOG_HEADER] = 0
        return kinds

    def first_from(self, end: int, kinds: Bytes) -> int:
        """The first message that belongs to a stretch of the log from `end` on; len(self) if there is none."""
        begun, finals = self._int64s(kinds == BEGIN, _HEAD)
        late = begun[finals >= end]
        first = int(late[0]) if len(late) else len(self)
        messages = (int(row) for row in np.flatnonzero(kinds == MESSAGE))
        return min(first, next((row for row in messages if _place(self.payload(row)) >= end), first))

    def last_commit(self, kinds: Bytes) -> int | None:
        """The end of the last transaction that ends here."""
        ends = self._int64s(kinds == COMMIT, _COMMIT_END)[1]
        return int(ends[-1]) if len(ends) else None

    def _int64s(self, which: npt.NDArray[np.bool_], offset: int) -> tuple[npt.NDArray[np.intp], Ints]:
        """Which of some messages are long enough for an integer at `offset`, and the integers."""
        rows = np.flatnonzero(which & (self.lengths >= offset + 8))
        return rows, int64_at(np.frombuffer(self.data, np.uint8), self.begins[rows] + offset)


def descriptions(kinds: Bytes) -> npt.NDArray[np.bool_]:
    """Which messages describe a relation or a type."""
    return np.isin(kinds, (RELATION, TYPE))


def segment(messages: Sequence[bytes | memoryview]) -> Segment:
    """Messages that came one by one."""
    gap = bytes(GAP)
    pieces = [piece for message in messages for piece in (gap, message)]
    return Segment(np.fromiter(map(len, messages), np.uintc, len(messages)), b"".join(pieces))


def _place(message: bytes) -> int:
    """The LSN that tells which stretch a logical message belongs to, its record's; -1 for one inside a transaction."""
    if message[_HEAD] & 1:
        return -1
    end = int.from_bytes(message[_HEAD + 1 : _HEAD + 9], "big")
    return record_start(end, len(message) - _HEAD - _MESSAGE_FRAME)
