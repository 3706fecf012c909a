"""A replication connection: reads messages ahead of the consumer and keeps the connection alive."""

from __future__ import annotations

import logging
import select
import socket
import struct
import time
import uuid
from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.postgres.log.feed import BLOCK_BYTES, Feed, feed
from tailrace.connectors.postgres.log.protocol.framing import CORRUPT, XLOG_HEADER
from tailrace.connectors.postgres.log.protocol.pgoutput import EPOCH_US, RELATION
from tailrace.connectors.postgres.log.protocol.segment import Segment
from tailrace.connectors.postgres.options import PUBLICATION_NAME, SLOT_NAME, STATUS_UPDATE_INTERVAL_MS
from tailrace.connectors.postgres.position import format_lsn
from tailrace.connectors.postgres.server import slot as slots
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.server.silence import Connection
from tailrace.connectors.reader_socket import ClientGone
from tailrace.errors import DecodeError

log = logging.getLogger(__name__)

# Wire bytes that are received before anybody asks for them.
AHEAD_BYTES = 16 << 20
# How long bytes may gather before they are taken.
_GATHER_SECONDS = 0.002
# If so many bytes came at once, a backlog is read: they may gather for longer, but not if the socket's buffer would be
# full by then. A receive costs about 0.1 ms whatever it brings, and the server pays for it as well. With one every 2 ms
# a row took 1.2 us of CPU time, with one every 20 ms it takes 0.4 us.
_MUCH_BYTES, _VERY_MUCH_BYTES, _GATHER_MUCH_SECONDS = 16 << 10, 1 << 20, 0.02
# If a receive brought so many, more has come meanwhile.
_MORE_BYTES = 64 << 10
_KEEPALIVE, _KEEPALIVE_BYTES = ord("k"), 18
_RELATION_OID = slice(XLOG_HEADER + 1, XLOG_HEADER + 5)
# A server that stops asks for its reader's position as fast as it is answered, until all it sent is confirmed.
_URGENT_QUESTIONS, _URGENT_SECONDS = 10, 1.0
# Each status update requests an answer; after so many without one the connection is dead.
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
    server has come, behind all messages that were read ahead.
    """

    connection: Connection
    feed: Feed
    interval: float
    silent_seconds: float
    _: KW_ONLY
    confirmed: int = 0
    last_commit: int | None = None
    ahead: deque[Segment] = field(default_factory=deque)
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
    _last_bytes: int = 0

    @staticmethod
    def open(config: Config, application: str, start: int, patience: int) -> Replication:
        """Stream the configured slot from `start`. Raises SourceError, psycopg.OperationalError.

        With more patience a connection that says nothing is taken for dead so many times later.
        """
        interval = config[STATUS_UPDATE_INTERVAL_MS] / 1000
        silent_seconds = patience * max(_LEAST_SILENT_SECONDS, _SILENT_INTERVALS * interval)
        connection = connect(config, replication=True, application=application)
        try:
            begun = feed(connection, _command(config, start).as_bytes(connection))
        except BaseException:
            connection.close()
            raise
        return Replication(connection, begun, interval, silent_seconds)

    @property
    def warning(self) -> str | None:
        """Since PostgreSQL 18 a missing publication is only a warning, and the rows are left out."""
        return self.feed.said.get(_NOT_READY or "")

    @property
    def is_full(self) -> bool:
        """Whether no more may be read ahead."""
        return self.ahead_bytes + self.feed.pending >= AHEAD_BYTES

    @property
    def is_stopping(self) -> bool:
        """Whether the server stops, and only waits for its readers to confirm what it sent, or to leave."""
        return self._questions >= _URGENT_QUESTIONS

    @property
    def is_report_due(self) -> bool:
        """Whether it is time for a status update."""
        return time.monotonic() - self.reported >= self.interval

    def take(self) -> Segment | None:
        """The next messages that have come, if any have. Raises what ended the stream."""
        if not self.ahead:
            self._receive(BLOCK_BYTES)
        if not self.ahead:
            return None
        segment = self.ahead.popleft()
        self.ahead_bytes -= segment.size
        return segment

    def put_back(self, segment: Segment) -> None:
        """Let messages be the next ones."""
        if len(segment):
            self.ahead.appendleft(segment)
            self.ahead_bytes += segment.size

    def read_ahead(self) -> None:
        """Take what has come, up to AHEAD_BYTES. Raises what ended the stream.

        While a server sends there are always a few bytes more. To take them at once keeps a core busy.
        """
        while not self.is_full and self._receive(AHEAD_BYTES - self.ahead_bytes - self.feed.pending) >= _MORE_BYTES:
            pass

    def _receive(self, limit: int) -> int:
        """Take what has come, of about `limit` bytes; returns about how many came."""
        pending = self.feed.pending
        segment, others = self.feed.receive(limit)
        for message in others:
            self.reached = self.keepalive(message)
        if segment is not None:
            self.ahead.append(segment)
            self.ahead_bytes += segment.size
        received = sum(map(len, others)) + (0 if segment is None else segment.size) + self.feed.pending - pending
        if received:
            self.heard = time.monotonic()
            self._last_bytes = received
        return received

    def describe(self, kind: int, message: bytes) -> None:
        """Keep the description of a relation; those of types are not needed."""
        if kind == RELATION:
            self.described += 1
            self.descriptions[int.from_bytes(message[_RELATION_OID], "big")] = self.described, message

    def keepalive(self, data: bytes) -> int:
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

    def gather_more(self, asker: Asker) -> None:
        """Let bytes gather if much has come at once. Raises ClientGone."""
        is_far_behind = not self.ahead and self._last_bytes >= _MUCH_BYTES
        if is_far_behind and self.gather([asker.client], [])[0]:
            raise ClientGone

    def gather(
        self, readers: list[socket.socket], writers: list[socket.socket]
    ) -> tuple[list[socket.socket], list[socket.socket]]:
        """Let bytes gather. Returns who else is ready, which ends the wait."""
        is_long = _MUCH_BYTES <= self._last_bytes < _VERY_MUCH_BYTES
        return select.select(readers, writers, [], _GATHER_MUCH_SECONDS if is_long else _GATHER_SECONDS)[:2]

    def await_bytes(self, asker: Asker) -> None:
        """Wait for bytes; ask an idle server now and then how far it has come. Raises ClientGone, Silent."""
        if asker.due() or self.is_report_due:
            self.report(ask=True)
        # To be woken for each message would cost more than to decode it: let some gather.
        watched: list[Any] = [self.connection.pgconn.socket, asker.client]
        if not select.select([asker.client], [], [], _GATHER_SECONDS)[0]:
            readable, _, _ = select.select(watched, [], [], min(asker.pause(), self.interval))
        else:
            readable = [asker.client]
        if asker.client in readable:
            raise ClientGone
        if not readable:
            self.still_there()

    def still_there(self) -> None:
        """After a wait in vain. Raises Silent."""
        silent = time.monotonic() - self.heard
        if silent > self.silent_seconds:
            raise Silent(f"the connection is lost: the server has answered nothing for {silent:.0f} s")

    def report(self, ask: bool = False) -> None:
        """A standby status update: flushed is what Spark has committed, written the last transaction that was read.

        The planner finds the latter in pg_stat_replication.write_lsn.
        """
        clock = int(time.time() * 1_000_000) - EPOCH_US
        status = struct.pack(">cqqqqB", b"r", self.last_commit or 0, self.confirmed, self.confirmed, clock, ask)
        if not self.feed.send(status, self.silent_seconds):
            raise Silent(f"the connection is lost: the server takes nothing for {self.silent_seconds:.0f} s")
        self.reported = time.monotonic()

    def close(self) -> None:
        """End the connection."""
        self.feed.close()
        self.connection.close()


def _command(config: Config, start: int) -> sql.Composed:
    options = {"proto_version": "1", "publication_names": config[PUBLICATION_NAME], "messages": "true"}
    options |= slots.stream_parameters(config)
    listed = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(option), sql.Literal(value)) for option, value in options.items()
    )
    return sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
        sql.Identifier(config[SLOT_NAME]), sql.SQL(format_lsn(start)), listed
    )


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
