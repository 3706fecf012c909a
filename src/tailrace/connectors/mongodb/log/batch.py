"""Parses answers to `aggregate`, `find` and `getMore` without a Python object for each value in the documents."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from tailrace.connectors.mongodb.types.layout import ARRAY, DOCUMENT, INT64, Buffer, Ints, Values, broken
from tailrace.connectors.mongodb.types.names import Names
from tailrace.connectors.mongodb.types.walk import members
from tailrace.errors import DecodeError

_ANSWER = Names(["cursor"])
_CURSOR = Names(["id", "firstBatch", "nextBatch", "postBatchResumeToken"])
_int32, _uint32 = struct.Struct("<i").unpack_from, struct.Struct("<I").unpack_from
_MOST_DIGITS = 8  # a batch has no hundred million documents


@dataclass(frozen=True)
class CursorBatch:
    """Documents of a cursor. `token` resumes a change stream behind all of them (BSON), None for another cursor.

    `cursor` is 0 when there are no more.
    """

    documents: Values
    cursor: int
    token: bytes | None

    def raw_documents(self) -> list[bytes]:
        """The BSON of each document."""
        data, places = self.documents.buffer.data, zip(self.documents.starts, self.documents.ends(), strict=True)
        return [bytes(data[start:end]) for start, end in places]


def read_batch(answer: bytes) -> CursorBatch:
    """The documents in a server's answer, which is BSON. Raises DecodeError."""
    buffer = Buffer([answer])
    whole = Values.documents(buffer, np.zeros(1, np.int64))
    (cursor,) = _ANSWER.columns(whole, members(whole))
    number, first, following, token = _CURSOR.columns(cursor, members(cursor))
    array = first if first.present[0] else following
    if array.kinds[0] != ARRAY or number.kinds[0] != INT64:
        raise DecodeError(
            "the server's answer has no cursor with a batch", remedy="report it with the server's version"
        )
    start = int(token.starts[0])
    resume = buffer.data[start : start + _int32(buffer.data, start)[0]] if token.kinds[0] == DOCUMENT else None
    documents = Values.documents(buffer, _documents(buffer, int(array.starts[0])))
    return CursorBatch(documents, int(buffer.int64[number.starts[0]]), resume)


def _documents(buffer: Buffer, array: int) -> Ints:
    """Where each document of an array begins: a step from one to the next takes less than a walk."""
    data, size = buffer.data, _uint32
    at, end = array + 4, array + size(data, array)[0] - 1
    if end >= buffer.size:
        raise broken(buffer, array, "a batch of documents")
    starts: list[int] = []
    add = starts.append
    for digits in range(1, _MOST_DIGITS + 1):  # of the index, between a type byte and a zero byte
        for _ in range(10**digits - 10**digits // 10 * (digits > 1)):
            if at >= end:
                break
            at += digits + 2
            add(at)
            at += size(data, at)[0]
    begins = np.array(starts, np.int64)
    headers = np.searchsorted(10 ** np.arange(1, _MOST_DIGITS), np.arange(len(begins)), side="right") + 3
    kinds, closing = buffer.uint8[begins - headers], buffer.uint8[begins - 1]
    if at != end or (kinds != DOCUMENT).any() or closing.any() or (buffer.uint32[begins] < 5).any():
        raise broken(buffer, array, "a batch of documents")
    return begins
