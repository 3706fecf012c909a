"""Packets of TDS over a socket, in plain text or TLS."""

from __future__ import annotations

import select
import socket
import ssl
import struct

HEADER = struct.Struct(">BBHHBB")
END_OF_MESSAGE = 0x01
RESET_CONNECTION = 0x08
RESET_CONNECTION_KEEP_TRANSACTION = 0x10

SQL_BATCH = 1
RPC = 3
RESPONSE = 4
ATTENTION = 6
BULK_LOAD = 7
TRANSACTION_MANAGER = 14
LOGIN7 = 16
PRELOGIN = 18

_READ = 1 << 16


class Disconnected(Exception):
    """The client has closed the connection."""


class Transport:
    """Reads and writes the messages of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.packet_size = 4096
        self.spid = 0
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._buffer = bytearray()
        self._packet_number = 0

    # Messages

    def read(self) -> tuple[int, int, bytes]:
        """Read one message: its type, the status of its first packet, its content."""
        content = bytearray()
        first_status = None
        while True:
            kind, status, length, _, _, _ = HEADER.unpack(self._take(HEADER.size))
            content += self._take(length - HEADER.size)
            first_status = status if first_status is None else first_status
            if status & END_OF_MESSAGE:
                return kind, first_status, bytes(content)

    def write(self, content: bytes | bytearray | memoryview, *, last: bool, kind: int = RESPONSE) -> int:
        """Send a message's content in full packets, and the rest of it too if it is the last; return what was sent."""
        room = self.packet_size - HEADER.size
        view = memoryview(content)
        pieces = []
        position = 0
        while len(view) - position > room or (last and position == 0) or (last and position < len(view)):
            piece = view[position : position + room]
            position += len(piece)
            status = END_OF_MESSAGE if last and position == len(view) else 0
            self._packet_number = (self._packet_number + 1) % 256
            pieces.append(HEADER.pack(kind, status, len(piece) + HEADER.size, self.spid, self._packet_number, 0))
            pieces.append(piece)
        if pieces:
            self._send(b"".join(pieces))
        return position

    def interrupted(self) -> bool:
        """Whether the client has sent something, such as an attention, that is not read yet."""
        return bool(self._buffer) or bool(select.select([self.socket], [], [], 0)[0])

    # TLS

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Shake hands, with the messages of TLS inside packets of the type PRELOGIN."""
        tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_handshake()
                self._incoming.write(self.read()[2])
            except ssl.SSLError as error:  # the client distrusts the certificate
                raise Disconnected from error
        self._send_handshake()
        self._tls = tls

    def stop_tls(self) -> None:
        """Go on in plain text, as after a login with encryption of the login only."""
        self._tls = None

    def _send_handshake(self) -> None:
        content = self._outgoing.read()
        if content:
            self.write(content, last=True, kind=PRELOGIN)

    # Bytes

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._buffer += self._receive()
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _receive(self) -> bytes:
        while self._tls is not None:
            try:
                return self._tls.read(_READ) or self._closed()
            except ssl.SSLWantReadError:  # noqa: PERF203  # the loop is the retrying
                self._incoming.write(self._receive_raw())
        return self._receive_raw()

    def _receive_raw(self) -> bytes:
        try:
            return self.socket.recv(_READ) or self._closed()
        except OSError:
            return self._closed()

    def _closed(self) -> bytes:
        raise Disconnected

    def _send(self, content: bytes) -> None:
        try:
            if self._tls is None:
                self.socket.sendall(content)
            else:
                self._tls.write(content)
                self.socket.sendall(self._outgoing.read())
        except OSError as error:
            raise Disconnected from error
