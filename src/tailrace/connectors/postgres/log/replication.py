"""A replication connection: the log's messages, read ahead while nobody takes them, and what keeps it alive."""

from __future__ import annotations

import logging
import select
import socket
import struct
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import pq, sql

from tailrace.config import Config
from tailrace.connectors.postgres.log.protocol.framing import CORRUPT, XLOG_HEADER
from tailrace.connectors.postgres.log.protocol.pgoutput import EPOCH_US, RELATION
from tailrace.connectors.postgres.log.refusals import broken, ended, refused
from tailrace.connectors.postgres.position import format_lsn
from tailrace.connectors.postgres.server import slot as slots
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.server.silence import begin_copy
from tailrace.connectors.reader_socket import ClientGone
from tailrace.errors import DecodeError

log = logging.getLogger(__name__)

Message = bytes | memoryview

# Wire bytes that are received before anybody asks for them.
AHEAD_BYTES = 16 << 20
XLOG = ord("w")
_KEEPALIVE, _KEEPALIVE_BYTES = ord("k"), 18
_RELATION_OID = slice(XLOG_HEADER + 1, XLOG_HEADER + 5)
# A server that stops asks for its reader's position as fast as it is answered, until all it sent is confirmed.
_URGENT_QUESTIONS, _URGENT_SECONDS = 10, 1.0
# The server is asked for a word at each status update; so many without any mean that the connection is dead.
_SILENT_INTERVALS, _LEAST_SILENT_SECONDS = 6, 60.0
_ASK_SECONDS = 0.02
_LOG_SECONDS = 60.0
_NOT_READY = psycopg.errors.ObjectNotInPrerequisiteState.sqlstate


class Silent(psycopg.OperationalError):
    """Nothing has come from the server for too long."""


@dataclass
class Replication:
    """One connection that streams a slot, from START_REPLICATION to its end.

    `confirmed` is what the server may throw away, `last_commit` the end of the last transaction that was read, `epoch`
    a name of this connection and `described` how many descriptions of tables came over it. `reached` is how far the
    server has come, behind all messages that were read ahead. `warning` is what it said of the publication.
    """

    connection: psycopg.Connection
    interval: float
    silent_seconds: float
    confirmed: int = 0
    last_commit: int | None = None
    warning: str | None = None
    ahead: deque[Message] = field(default_factory=deque)
    ahead_bytes: int = 0
    reached: int = 0
    # The server describes a relation once a connection: kept for workers that were not there then.
    epoch: str = field(default_factory=lambda: uuid.uuid4().hex)
    described: int = 0
    descriptions: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    reported: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    _questions: int = 0
    _questioned: float = 0.0

    @staticmethod
    def open(config: Config, application: str, start: int, patience: int) -> Replication:
        """Stream the configured slot from `start`. Raises SourceError, psycopg.OperationalError.

        With more patience a connection that says nothing is taken for dead so many times later.
        """
        interval = config.number("status.update.interval.ms") / 1000
        silent_seconds = patience * max(_LEAST_SILENT_SECONDS, _SILENT_INTERVALS * interval)
        opened = Replication(connect(config, replication=True, application=application), interval, silent_seconds)
        try:
            opened._start(config, start)
        except BaseException:
            opened.connection.close()
            raise
        return opened

    def _start(self, config: Config, start: int) -> None:
        options = {"proto_version": "1", "publication_names": config.text("publication.name"), "messages": "true"}
        options |= slots.stream_parameters(config)
        listed = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(option), sql.Literal(value)) for option, value in options.items()
        )
        command = sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
            sql.Identifier(config.text("slot.name")), sql.SQL(format_lsn(start)), listed
        )
        self.connection.add_notice_handler(self._warned)
        pgconn = self.connection.pgconn
        result = begin_copy(self.connection, command.as_bytes(self.connection))
        if result.status != pq.ExecStatus.COPY_BOTH:
            # A connection that broke at this moment is no refusal.
            if pgconn.status != pq.ConnStatus.OK:
                raise broken((result.error_message or b"").decode(errors="replace"))
            raise refused(result)
        pgconn.nonblocking = 1

    def _warned(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """Since PostgreSQL 18 a missing publication is only a warning, and the rows are left out."""
        if diagnostic.sqlstate == _NOT_READY:
            self.warning = diagnostic.message_primary

    @property
    def is_full(self) -> bool:
        """Whether no more may be read ahead."""
        return self.ahead_bytes >= AHEAD_BYTES

    @property
    def is_stopping(self) -> bool:
        """Whether the server stops, and only waits for its readers to confirm what it sent, or to leave."""
        return self._questions >= _URGENT_QUESTIONS

    @property
    def is_report_due(self) -> bool:
        """Whether it is time for a status update."""
        return time.monotonic() - self.reported >= self.interval

    def take_ahead(self, _: int) -> tuple[int, Message]:
        """The next message that was read ahead, in the form in which libpq gives one."""
        if not self.ahead:
            return 0, b""
        message = self.ahead.popleft()
        self.ahead_bytes -= len(message)
        return len(message), message

    def put_back(self, message: Message) -> None:
        """Let a message be the next one."""
        self.ahead.appendleft(message)
        self.ahead_bytes += len(message)

    def read_ahead(self) -> None:
        """Take what has come, up to AHEAD_BYTES."""
        while not self.is_full:
            length, data = self.connection.pgconn.get_copy_data(1)
            if length < 0:
                raise ended(self.connection)
            if not length:
                return
            if data[0] == XLOG:
                self.ahead.append(data)
                self.ahead_bytes += length
            else:
                self.reached = self.keepalive(data)

    def describe(self, kind: int, message: Message) -> None:
        """Keep the description of a relation; those of types are not needed."""
        if kind == RELATION:
            self.described += 1
            self.descriptions[int.from_bytes(message[_RELATION_OID], "big")] = self.described, bytes(message)

    def keepalive(self, data: Message) -> int:
        """Answer a keepalive if it asks for one; returns how far the server has come. Raises DecodeError."""
        if data[0] != _KEEPALIVE or len(data) != _KEEPALIVE_BYTES:
            raise DecodeError(f"unknown message {bytes(data[:1])!r} on the replication connection", remedy=CORRUPT)
        if data[17]:
            now = time.monotonic()
            self._questions = self._questions + 1 if now - self._questioned < _URGENT_SECONDS else 1
            self._questioned = now
            if not self.is_stopping:
                self.report()
        return int.from_bytes(data[1:9], "big")

    def await_bytes(self, asker: Asker) -> None:
        """Wait for bytes; ask an idle server now and then how far it has come. Raises ClientGone, Silent."""
        if asker.due() or self.is_report_due:
            self.report(ask=True)
        pgconn = self.connection.pgconn
        watched: list[Any] = [pgconn.socket, asker.client]
        readable, _, _ = select.select(watched, [], [], min(asker.pause(), self.interval))
        if asker.client in readable:
            raise ClientGone
        self.listen(bool(readable))

    def listen(self, is_readable: bool) -> None:
        """Take the bytes that have come, if any have. Raises Silent."""
        now = time.monotonic()
        if is_readable:
            self.connection.pgconn.consume_input()
            self.heard = now
        elif now - self.heard > self.silent_seconds:
            raise Silent(f"the connection is lost: the server has answered nothing for {now - self.heard:.0f} s")

    def report(self, ask: bool = False) -> None:
        """A standby status update: flushed is what Spark has committed, written the last transaction that was read.

        The planner finds the latter in pg_stat_replication.write_lsn.
        """
        pgconn = self.connection.pgconn
        clock = int(time.time() * 1_000_000) - EPOCH_US
        pgconn.put_copy_data(
            struct.pack(">cqqqqB", b"r", self.last_commit or 0, self.confirmed, self.confirmed, clock, ask)
        )
        deadline = time.monotonic() + self.silent_seconds
        while pgconn.flush():
            if not select.select([], [pgconn.socket], [], max(deadline - time.monotonic(), 0))[1]:
                raise Silent(f"the connection is lost: the server takes nothing for {self.silent_seconds:.0f} s")
        self.reported = time.monotonic()

    def close(self) -> None:
        """End the connection."""
        self.connection.close()


class Asker:
    """When to ask an idle server for its position: at once, then at growing intervals while it is still decoding.

    `client` is who waits for it.
    """

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.interval = _ASK_SECONDS
        self.next = 0.0
        self.since = self.logged = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to ask, which counts as having asked."""
        now = time.monotonic()
        if now - self.logged > _LOG_SECONDS:
            self.logged = now
            log.warning("the server has been decoding for %d s without a transaction for us", now - self.since)
        if now < self.next:
            return False
        self.next = now + self.interval
        self.interval = min(self.interval * 2, 1.0)
        return True

    def pause(self) -> float:
        """Seconds until it is time again."""
        return max(self.next - time.monotonic(), 0.001)
