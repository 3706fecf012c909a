"""The tokens of a response, other than rows."""

from __future__ import annotations

import struct

from ..datatypes import SqlType
from . import typeinfo

DONE_MORE, DONE_ERROR, DONE_IN_TRANSACTION, DONE_COUNT, DONE_ATTENTION = 0x1, 0x2, 0x4, 0x10, 0x20
DONE, DONE_PROCEDURE, DONE_IN_PROCEDURE = 0xFD, 0xFE, 0xFF

NULLABLE, CASE_SENSITIVE, UPDATABLE, IDENTITY, COMPUTED = 0x01, 0x02, 0x08, 0x10, 0x20

COMMANDS = {
    "SELECT": 0xC1,
    "INSERT": 0xC3,
    "DELETE": 0xC4,
    "UPDATE": 0xC5,
    "MERGE": 0x117,
    "BEGIN": 0xD4,
    "COMMIT": 0xD5,
}

ENV_DATABASE, ENV_PACKET_SIZE, ENV_COLLATION, ENV_BEGIN, ENV_COMMIT, ENV_ROLLBACK, ENV_RESET = 1, 4, 7, 8, 9, 10, 18


def short_text(text: str) -> bytes:
    """Text with a one-byte length in characters."""
    raw = text.encode("utf-16-le")
    return bytes([len(raw) // 2]) + raw


def long_text(text: str) -> bytes:
    """Text with a two-byte length in characters."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return struct.pack("<H", len(raw) // 2) + raw


def message(
    number: int, state: int, severity: int, text: str, server: str, procedure: str = "", line: int = 1
) -> bytes:
    """An ERROR token, or an INFO token where the severity is 10 or lower."""
    content = struct.pack("<IBB", number, state, severity) + long_text(text[:4000])
    content += short_text(server) + short_text(procedure) + struct.pack("<I", line)
    return struct.pack("<BH", 0xAA if severity > 10 else 0xAB, len(content)) + content


def login_acknowledged(tds_version: int) -> bytes:
    """The LOGINACK token."""
    content = b"\x01" + struct.pack(">I", tds_version) + short_text("Microsoft SQL Server") + bytes([16, 0, 0x10, 0x27])
    return struct.pack("<BH", 0xAD, len(content)) + content


def environment(kind: int, new: str | bytes, old: str | bytes) -> bytes:
    """An ENVCHANGE token; text for names, bytes for collations and transactions."""
    content = bytes([kind])
    for value in (new, old):
        content += short_text(value) if isinstance(value, str) else bytes([len(value)]) + value
    return struct.pack("<BH", 0xE3, len(content)) + content


def done(token: int, status: int, command: int, count: int) -> bytes:
    """The end of a statement, of a procedure's statement or of a procedure."""
    return struct.pack("<BHHQ", token, status, command, count)


def return_status(value: int) -> bytes:
    """What a procedure returned."""
    return struct.pack("<Bi", 0x79, value)


def return_value(ordinal: int, name: str, kind: SqlType, cell: bytes) -> bytes:
    """The value of an output parameter; `cell` is encoded as in a row."""
    head = struct.pack("<BH", 0xAC, ordinal) + short_text(name) + struct.pack("<BIH", 1, 0, NULLABLE)
    return head + typeinfo.encode(kind, nullable=True) + cell


def columns(described: list[tuple[str, SqlType, int]]) -> bytes:
    """The COLMETADATA token; a column is described by name, type and flags."""
    out = bytearray(struct.pack("<BH", 0x81, len(described)))
    for name, kind, flags in described:
        out += struct.pack("<IH", typeinfo.user_type(kind, bool(flags & NULLABLE)), flags)
        out += typeinfo.encode(kind, nullable=bool(flags & NULLABLE))
        if kind.name in ("text", "ntext", "image"):
            out += b"\x01" + long_text("")
        out += short_text(name)
    return bytes(out)
