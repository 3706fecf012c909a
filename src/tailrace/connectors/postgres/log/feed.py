"""Receives the bytes of a replication connection: from its socket in large blocks, or by libpq if it is encrypted.

libpq wakes its user for every message and copies each. Reading the socket instead costs a third of the CPU time. libpq
connects in either case, so authentication is its affair; on a plain connection it has read nothing of the stream, as
START_REPLICATION is sent past it.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Generator
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import pq
from psycopg.waiting import Wait

from tailrace.connectors.postgres.log.protocol.framing import CORRUPT, GAP, Ints
from tailrace.connectors.postgres.log.protocol.segment import COPY_DATA, XLOG, Segment, segment, walk
from tailrace.connectors.postgres.log.refusals import broken, ended, ended_by, refused, refused_by
from tailrace.connectors.postgres.server.connect import error_of
from tailrace.connectors.postgres.server.silence import Connection, begin_copy
from tailrace.errors import DecodeError
from tailrace.override import override

# Bytes that are taken from the socket at once.
BLOCK_BYTES = 4 << 20
Received = tuple[Segment | None, list[bytes]]
_COPY_BOTH, _COPY_DONE, _ERROR, _NOTICE = b"WcEN"
_ENDING = (_COPY_DONE, _ERROR)
_GSS_SINCE = 120000
_COMMAND_SECONDS = 60  # guessed
# PostgreSQL sends no message of more than a gigabyte.
_LONGEST = (1 << 30) + GAP


class Feed(Protocol):
    """What has come over a connection that streams, and the way back."""

    said: dict[str, str]
    """The server's notices: texts by their SQLSTATEs."""

    @property
    def pending(self) -> int:
        """Bytes of a message that has not come whole."""

    def receive(self, limit: int) -> Received:
        """What has come, of about `limit` bytes: XLogData, and the other messages. Raises what ended the stream."""

    def send(self, message: bytes, seconds: float) -> bool:
        """Send a message; False if the server does not take it for so long. Raises OperationalError."""

    def close(self) -> None:
        """Leave the connection."""


def feed(connection: Connection, command: bytes) -> Feed:
    """Begin a stream by a command. Raises what the server refuses."""
    if connection.pgconn.ssl_in_use or _is_gss(connection):
        return LibpqFeed(connection, command)
    return SocketFeed(connection, command)


def _is_gss(connection: Connection) -> bool:
    if connection.info.server_version < _GSS_SINCE:
        return False
    query = "SELECT encrypted FROM pg_stat_gssapi WHERE pid = pg_backend_pid()"
    return connection.execute(query.encode()).fetchone() == (True,)


class LibpqFeed(Feed):
    """An encrypted connection: libpq's messages, one by one."""

    pending = 0

    def __init__(self, connection: Connection, command: bytes) -> None:
        self.connection, self.said = connection, dict[str, str]()
        connection.add_notice_handler(lambda said: self.said.update({said.sqlstate or "": said.message_primary or ""}))
        result = begin_copy(connection, command)
        if result.status != pq.ExecStatus.COPY_BOTH:
            # A connection that broke at this moment is no refusal.
            if connection.pgconn.status != pq.ConnStatus.OK:
                raise broken((result.error_message or b"").decode(errors="replace"))
            raise refused(result)
        connection.pgconn.nonblocking = 1

    @override
    def receive(self, limit: int) -> Received:
        return self._taken(limit) or self._read(limit)

    def _read(self, limit: int) -> Received:
        self.connection.pgconn.consume_input()
        return self._taken(limit) or (None, [])

    def _taken(self, limit: int) -> Received | None:
        messages: list[bytes | memoryview] = []
        others: list[bytes] = []
        size = 0
        while size < limit:
            length, data = self.connection.pgconn.get_copy_data(1)
            if length <= 0:
                if length < 0 and not messages and not others:
                    raise ended(self.connection)
                break
            if data[0] == XLOG:
                messages.append(data)
                size += length
            else:
                others.append(bytes(data))
        if not messages and not others:
            return None
        return (segment(messages) if messages else None), others

    @override
    def send(self, message: bytes, seconds: float) -> bool:
        pgconn = self.connection.pgconn
        pgconn.put_copy_data(message)
        deadline = time.monotonic() + seconds
        while pgconn.flush():
            if not _is_writable(pgconn.socket, deadline):
                return False
        return True

    @override
    def close(self) -> None: ...


class SocketFeed(Feed):
    """A plain connection: its socket.

    Source: PostgreSQL manual, "Message Formats" and "Streaming Replication Protocol".
    """

    def __init__(self, connection: Connection, command: bytes) -> None:
        self.said: dict[str, str] = {}
        self._socket = socket.socket(fileno=os.dup(connection.pgconn.socket))
        self._socket.setblocking(False)
        self._buffer, self._size = bytearray(BLOCK_BYTES), 0
        self._over: str | None = None
        text = command + b"\0"
        try:
            self._send(b"Q" + struct.pack(">I", len(text) + 4) + text, time.monotonic() + _COMMAND_SECONDS)
            connection.wait(self._begun())
        except BaseException:
            self.close()
            raise

    @property
    @override
    def pending(self) -> int:
        return self._size

    def _begun(self) -> Generator[Wait, bool, None]:
        """Until the stream has begun. Raises what the server refuses."""
        while True:
            for at, following in pairwise(walk(self._buffer, self._size).tolist()):
                if self._buffer[at] == _COPY_BOTH:
                    self._drop(following)
                    return
                if self._buffer[at] == _ERROR:
                    raise refused_by(self._error(at))
                self._notice(at)
            if self._over is not None:
                raise broken(self._over)
            while not (yield Wait.R):
                pass
            self._fill(BLOCK_BYTES)

    @override
    def receive(self, limit: int) -> Received:
        self._fill(limit)
        bounds = walk(self._buffer, self._size)
        if len(bounds) == 1:
            if self._over is not None:
                raise broken(self._over)
            return None, []
        buffer = np.frombuffer(self._buffer, np.uint8)
        plain = (buffer[bounds[:-1]] == COPY_DATA) & (buffer[np.minimum(bounds[:-1] + GAP, len(buffer) - 1)] == XLOG)
        del buffer
        others: list[bytes] = []
        if not plain.all():
            plain, others = self._other(bounds, plain)
            bounds = bounds[: len(plain) + 1]
        end = int(bounds[-1])
        whole = Segment((np.diff(bounds) - GAP).astype(np.uintc), bytes(memoryview(self._buffer)[:end]))
        self._drop(end)
        mine = whole if plain.all() else whole.select(plain)
        return (mine if len(mine) else None), others

    def _other(self, bounds: Ints, plain: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], list[bytes]]:
        """Keepalives are taken, notices logged; what ends the stream is raised once it is the first message."""
        others: list[bytes] = []
        for row in np.flatnonzero(~plain).tolist():
            at, following = bounds[row : row + 2].tolist()
            kind = self._buffer[at]
            if kind in _ENDING:
                if row == 0:
                    raise self._ending(at)
                return plain[:row], others
            if kind == COPY_DATA:
                others.append(bytes(self._buffer[at + GAP : following]))
            else:
                self._notice(at)
        return plain, others

    def _fill(self, limit: int) -> None:
        """Take up to `limit` bytes from the socket."""
        (wanted,) = struct.unpack_from(">I", self._buffer, 1) if self._size >= GAP else (0,)
        if wanted > _LONGEST:
            raise DecodeError(f"a message of {wanted} bytes on the replication connection", remedy=CORRUPT)
        most = max(min(self._size + limit, BLOCK_BYTES), wanted + 1 if wanted >= BLOCK_BYTES else 0)
        if most > len(self._buffer):
            self._buffer.extend(bytes(most - len(self._buffer)))
        with memoryview(self._buffer) as view:
            while self._size < most and self._over is None:
                try:
                    got = self._socket.recv_into(view[self._size : most])
                except BlockingIOError:
                    return
                except OSError as error:
                    # Why the server ended it may have come before.
                    self._over = f"the connection is lost: {error.strerror}"
                    return
                self._size += got
                if not got:
                    self._over = ""

    def _drop(self, end: int) -> None:
        """Leave out what has been taken."""
        rest = self._size - end
        self._buffer[:rest] = self._buffer[end : self._size]
        self._size = rest
        if len(self._buffer) > BLOCK_BYTES and rest <= BLOCK_BYTES:
            del self._buffer[BLOCK_BYTES:]

    def _ending(self, at: int) -> Exception:
        if self._buffer[at] == _COPY_DONE:
            return broken("")
        return ended_by(self._error(at))

    def _notice(self, at: int) -> None:
        if self._buffer[at] == _NOTICE:
            fields = self._fields(at)
            self.said[fields.get("C", "")] = fields.get("M", "")

    def _error(self, at: int) -> psycopg.Error:
        fields = self._fields(at)
        return error_of(fields.get("C", ""), "\n".join(filter(None, (fields.get("M"), fields.get("W")))))

    def _fields(self, at: int) -> dict[str, str]:
        """Of an error or a notice, by their letters."""
        (length,) = struct.unpack_from(">I", self._buffer, at + 1)
        content = bytes(self._buffer[at + GAP : at + 1 + length]).decode(errors="replace")
        return {field[0]: field[1:] for field in content.split("\0") if field}

    @override
    def send(self, message: bytes, seconds: float) -> bool:
        framed = b"d" + struct.pack(">I", len(message) + 4) + message
        return self._send(framed, time.monotonic() + seconds)

    def _send(self, message: bytes, deadline: float) -> bool:
        rest = memoryview(message)
        while len(rest):
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:  # noqa: PERF203  # once a full buffer
                if not _is_writable(self._socket, deadline):
                    return False
            except OSError as error:
                raise broken(f"the connection is lost: {error.strerror}") from error
        return True

    @override
    def close(self) -> None:
        """The server sees the connection's end when libpq has closed it as well."""
        self._socket.close()


def _is_writable(where: socket.socket | int, deadline: float) -> bool:
    return bool(select.select([], [where], [], max(deadline - time.monotonic(), 0))[1])
