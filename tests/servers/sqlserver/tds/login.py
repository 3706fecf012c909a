"""The login message: who connects, with what, to which database."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

TDS_7_3 = 0x730A0003
TDS_7_4 = 0x74000004
_OFFSETS = 36
_FIELDS = ("host", "user", "password", "application", "server", "extension", "library", "language", "database")


@dataclass(frozen=True)
class Login:
    """What a client says of itself."""

    tds_version: int
    packet_size: int
    host: str
    user: str
    password: str = field(repr=False)
    application: str
    database: str
    read_only: bool


def parse(content: bytes) -> Login:
    """Read a LOGIN7 message."""
    _, version, packet_size = struct.unpack_from("<III", content, 0)
    type_flags = content[26]
    texts = {}
    for number, name in enumerate(_FIELDS):
        offset, length = struct.unpack_from("<HH", content, _OFFSETS + number * 4)
        if name != "extension":
            raw = content[offset : offset + 2 * length]
            texts[name] = (_clear(raw) if name == "password" else raw).decode("utf-16-le")
    return Login(
        tds_version=version,
        packet_size=packet_size,
        host=texts["host"],
        user=texts["user"],
        password=texts["password"],
        application=texts["application"],
        database=texts["database"],
        read_only=bool(type_flags & 0x20),
    )


def _clear(scrambled: bytes) -> bytes:
    """Undo the scrambling of a password."""
    return bytes((((byte ^ 0xA5) << 4) | ((byte ^ 0xA5) >> 4)) & 0xFF for byte in scrambled)
