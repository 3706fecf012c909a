"""Splits BSON documents into elements and builds new documents; values are copied as bytes and keep their types."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tailrace.connectors.mongodb.types.layout import ARRAY, COUNTED, FIXED, REGEX, STRING
from tailrace.errors import DecodeError

_FIXED, _COUNTED = FIXED.tolist(), COUNTED.tolist()
_int32 = struct.Struct("<i")
Value = tuple[int, bytes]


def elements(document: bytes) -> Iterator[tuple[bytes, Value]]:
    """The name of each member of a document, and the type and bytes of its value. Raises DecodeError."""
    at, end = 4, len(document) - 1
    while at < end:
        kind, named = document[at], document.index(0, at + 1)
        start = named + 1
        size = _FIXED[kind] + (_int32.unpack_from(document, start)[0] if _COUNTED[kind] else 0)
        stop = start + size if kind != REGEX else document.index(0, document.index(0, start) + 1) + 1
        if not start <= stop <= end:
            raise _broken()
        yield document[at + 1 : named], (kind, document[start:stop])
        at = stop
    if at != end:
        raise _broken()


def _broken() -> DecodeError:
    return DecodeError("an entry of the oplog is no BSON document", remedy="report it with the server's version")


def element(name: bytes, value: Value) -> bytes:
    """A member of a document."""
    return b"%c%b\0%b" % (value[0], name, value[1])


def document(*members: bytes) -> bytes:
    """A document of these members."""
    body = b"".join(members)
    return b"%b%b\0" % (_int32.pack(len(body) + 5), body)


def array(items: list[Value]) -> Value:
    """An array of these values."""
    return ARRAY, document(*(element(b"%d" % place, item) for place, item in enumerate(items)))


def text(value: bytes) -> Value:
    """A string."""
    return STRING, b"%b%b\0" % (_int32.pack(len(value) + 1), value)


def text_of(value: Value) -> bytes:
    """The inverse of `text`."""
    return value[1][4:-1]
