"""Messages as a server's walsender writes them, so that decoders can be fed without a server."""

from __future__ import annotations

import struct
from collections.abc import Sequence

UNCHANGED = object()
# Microseconds from 1970 to PostgreSQL's epoch.
EPOCH_US = 946_684_800_000_000

Image = Sequence[object]


def xlog(lsn: int, payload: bytes) -> bytes:
    """A message of the output plugin in the frame of the replication protocol."""
    return b"w" + struct.pack(">qqq", lsn, lsn, 0) + payload


def begin(final_lsn: int, commit_us: int, xid: int) -> bytes:
    return b"B" + struct.pack(">qqI", final_lsn, commit_us - EPOCH_US, xid)


def commit(lsn: int, end_lsn: int, commit_us: int) -> bytes:
    return b"C" + struct.pack(">bqqq", 0, lsn, end_lsn, commit_us - EPOCH_US)


def origin(lsn: int, name: str) -> bytes:
    return b"O" + struct.pack(">q", lsn) + name.encode() + b"\0"


def type_(oid: int, schema: str, name: str) -> bytes:
    return b"Y" + struct.pack(">I", oid) + schema.encode() + b"\0" + name.encode() + b"\0"


def message(lsn: int, prefix: str, content: bytes) -> bytes:
    return b"M" + struct.pack(">bq", 1, lsn) + prefix.encode() + b"\0" + struct.pack(">I", len(content)) + content


def relation(oid: int, schema: str, table: str, identity: str, columns: Sequence[tuple[str, bool]]) -> bytes:
    """`columns` are names and whether they are part of the identity; all are of type text."""
    head = b"R" + struct.pack(">I", oid) + schema.encode() + b"\0" + table.encode() + b"\0"
    body = b"".join(bytes([marked]) + name.encode() + b"\0" + struct.pack(">Ii", 25, -1) for name, marked in columns)
    return head + identity.encode() + struct.pack(">H", len(columns)) + body


def image(values: Image) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(map(_cell, values))


def _cell(value: object) -> bytes:
    if value is None:
        return b"n"
    if value is UNCHANGED:
        return b"u"
    text = str(value).encode()
    return b"t" + struct.pack(">I", len(text)) + text


def insert(oid: int, new: Image) -> bytes:
    return b"I" + struct.pack(">I", oid) + b"N" + image(new)


def update(oid: int, new: Image, old: Image | None = None, marker: str = "K") -> bytes:
    before = b"" if old is None else marker.encode() + image(old)
    return b"U" + struct.pack(">I", oid) + before + b"N" + image(new)


def delete(oid: int, old: Image, marker: str = "K") -> bytes:
    return b"D" + struct.pack(">I", oid) + marker.encode() + image(old)


def truncate(*oids: int) -> bytes:
    return b"T" + struct.pack(f">Ib{len(oids)}I", len(oids), 0, *oids)
