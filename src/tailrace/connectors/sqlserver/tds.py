"""Speaks the first messages of TDS, to learn why the server refuses a connection: FreeTDS reports it incompletely.

After [MS-TDS], Microsoft's description of the protocol: sections PRELOGIN, LOGIN7 and ERROR.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_PRELOGIN, _LOGIN, _HEADER, _ENCRYPT = 0x12, 0x10, 8, 1
_OPTIONS = struct.pack(">BHHBHHB", 0, 11, 6, _ENCRYPT, 17, 1, 0xFF) + bytes(6)
_OPTION, _PACKET = struct.Struct(">BHH"), 4096
OFF, ON, NOT_SUPPORTED, REQUIRED = 0, 1, 2, 3
# TDS 7.4 in LOGIN7: version, packet size, version of the client, process, connection; flags; zone, language.
_VERSION, _FLAGS = struct.pack("<IIIII", 0x74000004, _PACKET, 0x07000000, 0, 0), bytes((0xE0, 0x03, 0, 0))
_READ_ONLY = bytes((0xE0, 0x03, 0x20, 0))
_FIXED = 94
# Tokens: those of a length of two bytes, and the end of an answer.
_ERROR, _SIZED, _DONE = 0xAA, (0xAA, 0xAB, 0xAD, 0xE3), (0xFD, 0xFE, 0xFF)
# Of an answer that is longer nobody asks for more here.
_MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class ServerError:
    """An error of the server's answer."""

    number: int
    state: int
    severity: int
    text: str


@dataclass(frozen=True)
class Login:
    """Who connects, and to which database. `server` is the name by which a gateway finds the server."""

    server: str
    user: str
    password: str
    database: str
    application: str
    is_read_only: bool = False

    def packed(self) -> bytes:
        """The message LOGIN7."""
        texts = ("", self.user, self.password, self.application, self.server, "", "tailrace", "", self.database)
        place, data, offsets = _FIXED, b"", b""
        for number, text in enumerate(texts):
            raw = text.encode("utf-16-le")
            offsets += struct.pack("<HH", place, len(raw) // 2)
            data += bytes(((byte >> 4 | byte << 4) & 0xFF) ^ 0xA5 for byte in raw) if number == 2 else raw
            place += len(raw)
        flags = _READ_ONLY if self.is_read_only else _FLAGS
        # Behind the texts' places: the client's id, and nothing of SSPI, a file to attach, a new password.
        rest = bytes(6) + struct.pack("<HHHHHHI", place, 0, place, 0, place, 0, 0)
        content = _VERSION + flags + struct.pack("<II", 0, 0) + offsets + rest + data
        return struct.pack("<I", len(content) + 4) + content


class Conversation:
    """The first messages over a socket. Methods raise OSError, ValueError and struct.error of an answer cut short."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    def greet(self, encrypt: int) -> int | None:
        """Ask for encryption (OFF: of the login alone); what the server says to it."""
        self._send(_PRELOGIN, _OPTIONS + bytes([encrypt]))
        answer, place = self._receive(), 0
        while answer[place : place + 1] not in (b"", b"\xff"):
            name, start, size = _OPTION.unpack_from(answer, place)
            if name == _ENCRYPT and size:
                return int(answer[start])
            place += _OPTION.size
        return None

    def shake_hands(self, context: ssl.SSLContext, host: str) -> None:
        """TLS, inside of TDS's messages. Raises ssl.SSLCertVerificationError."""
        # SQL Server speaks TLS 1.2 inside of TDS 7.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        while not _has_ended(tls):
            self._send(_PRELOGIN, self._outgoing.read())
            self._incoming.write(self._receive())
        self._tls = tls

    def refusals(self, login: Login, *, is_all_encrypted: bool) -> list[ServerError]:
        """Log in; the errors of the answer, none where the server lets the login in."""
        packets = _packets(_LOGIN, login.packed())
        if self._tls is None:
            self._socket.sendall(packets)
        else:
            self._tls.write(packets)
            self._socket.sendall(self._outgoing.read())
        answer = self._decrypted() if self._tls is not None and is_all_encrypted else self._answer()
        return list(_errors(answer))

    def _answer(self) -> bytes:
        content, is_last = b"", False
        while not is_last and len(content) < _MOST_BYTES:
            _, status, size = struct.unpack(">BBH4x", self._exactly(_HEADER))
            content, is_last = content + self._exactly(size - _HEADER), bool(status & 1)
        return content

    def _decrypted(self) -> bytes:
        """The same where all of the connection is encrypted: packets inside of TLS."""
        assert self._tls is not None
        packets, content = b"", b""
        while len(content) < _MOST_BYTES:
            while len(packets) >= _HEADER:
                _, status, size = struct.unpack_from(">BBH4x", packets)
                if len(packets) < size:
                    break
                content, packets = content + packets[_HEADER:size], packets[size:]
                if status & 1:
                    return content
            packets += self._read()
        return content

    def _read(self) -> bytes:
        assert self._tls is not None
        while True:
            try:
                return self._tls.read(_PACKET)
            except ssl.SSLWantReadError:  # noqa: PERF203  # more of a record is awaited
                piece = self._socket.recv(_PACKET)
                if not piece:
                    raise ConnectionError("the server has ended the connection") from None
                self._incoming.write(piece)

    def _send(self, kind: int, content: bytes) -> None:
        self._socket.sendall(_packets(kind, content))

    def _receive(self) -> bytes:
        """The content of one packet. Raises OSError where the connection ends."""
        _, _, size = struct.unpack(">BBH4x", self._exactly(_HEADER))
        return self._exactly(size - _HEADER)

    def _exactly(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            piece = self._socket.recv(size - len(content))
            if not piece:
                raise ConnectionError("the server has ended the connection")
            content += piece
        return content


def _packets(kind: int, content: bytes) -> bytes:
    packets = b""
    for first in range(0, len(content), _PACKET - _HEADER):
        piece = content[first : first + _PACKET - _HEADER]
        is_last = first + len(piece) == len(content)
        packets += struct.pack(">BBHHBB", kind, is_last, len(piece) + _HEADER, 0, 0, 0) + piece
    return packets


def _has_ended(handshake: ssl.SSLObject) -> bool:
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _errors(answer: bytes) -> Iterator[ServerError]:
    place = 0
    while place < len(answer) and answer[place] in _SIZED:
        (size,) = struct.unpack_from("<H", answer, place + 1)
        if answer[place] == _ERROR:
            number, state, severity, length = struct.unpack_from("<IBBH", answer, place + 3)
            start = place + 11
            yield ServerError(number, state, severity, answer[start : start + 2 * length].decode("utf-16-le"))
        place += 3 + size
        while place < len(answer) and answer[place] in _DONE:
            place += 13
