"""The first exchange of a connection: version and encryption."""

from __future__ import annotations

import struct

VERSION, ENCRYPTION, INSTANCE, THREAD, MARS = 0, 1, 2, 3, 4
ENCRYPT_OFF, ENCRYPT_ON, ENCRYPT_NOT_SUPPORTED, ENCRYPT_REQUIRED = 0, 1, 2, 3
SERVER_VERSION = bytes([16, 0, 0x10, 0x27, 0, 0])

_END = 0xFF
_OPTION = struct.Struct(">BHH")


def parse(content: bytes) -> dict[int, bytes]:
    """The options of a prelogin message."""
    options = {}
    position = 0
    while content[position] != _END:
        option, offset, length = _OPTION.unpack_from(content, position)
        options[option] = content[offset : offset + length]
        position += _OPTION.size
    return options


def build(options: dict[int, bytes]) -> bytes:
    """A prelogin message of these options."""
    offset = len(options) * _OPTION.size + 1
    head = bytearray()
    for option, data in options.items():
        head += _OPTION.pack(option, offset, len(data))
        offset += len(data)
    return bytes(head) + bytes([_END]) + b"".join(options.values())


def negotiate(asked: int, policy: str) -> int:
    """The encryption to answer with: policy is `off`, `login` (encrypts when asked) or `required`."""
    if policy == "off":
        return ENCRYPT_NOT_SUPPORTED
    if policy == "required":
        return ENCRYPT_REQUIRED
    if asked in (ENCRYPT_ON, ENCRYPT_REQUIRED):
        return ENCRYPT_ON
    return ENCRYPT_NOT_SUPPORTED if asked == ENCRYPT_NOT_SUPPORTED else ENCRYPT_OFF
