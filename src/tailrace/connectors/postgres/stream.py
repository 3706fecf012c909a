"""The replication connection: kept open in a worker between micro-batches, so that nothing is decoded twice.

A stretch of the log is [start, end) by the LSN of commit records, which is also what the server skips by when a
stream starts at `start`: a transaction lies in exactly one stretch, whole. The first Begin of a later transaction ends
a stretch; on an idle server a keepalive that has passed `end` does. What was received beyond `end` waits here for the
next stretch, which asks for it if it begins where this one ended.
"""

from __future__ import annotations

import logging
import select
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
from psycopg import pq, sql

from tailrace.config import Config
from tailrace.connectors.postgres import slot as slots
from tailrace.connectors.postgres.catalog import CapturedTable
from tailrace.connectors.postgres.connect import connect, first_line, is_transient
from tailrace.connectors.postgres.gap import find, taken
from tailrace.connectors.postgres.position import Claim, format_lsn
from tailrace.connectors.postgres.protocol.framing import CORRUPT, XLOG_HEADER
from tailrace.connectors.postgres.protocol.pgoutput import BEGIN, EPOCH_US, MESSAGE, RELATION, TYPE, Relations
from tailrace.connectors.postgres.protocol.wal import record_start
from tailrace.connectors.postgres.pulse import Pulse
from tailrace.connectors.retry import Backoff, is_listed
from tailrace.errors import DecodeError, SourceError

log = logging.getLogger(__name__)

Message = bytes | memoryview

# Wire bytes decoded together: large enough that numpy's fixed costs vanish, small enough for a worker's memory.
CHUNK_BYTES = 4 << 20
_XLOG, _KEEPALIVE, _KEEPALIVE_BYTES = ord("w"), ord("k"), 18
_DESCRIPTIONS = (RELATION, TYPE)
_NOTABLE = frozenset((BEGIN, MESSAGE, *_DESCRIPTIONS))
# How long a stream without a next stretch is kept.
IDLE_SECONDS = 10.0
_ASK_SECONDS = 0.02
_REPORT_SECONDS = 60.0
# Of a Message: flags, LSN and the content's length, which stand beside prefix (with its NUL) and content.
_MESSAGE_FRAME = 13
_NOT_READY = psycopg.errors.ObjectNotInPrerequisiteState.sqlstate


@dataclass
class LogStream:
    """A replication connection and how far it has come. `position` is the end of the last stretch read whole."""

    config: Config
    application: str
    connection: psycopg.Connection | None = None
    position: int | None = None
    last_commit: int | None = None
    pending: Message | None = None
    confirmed: int = 0
    # The server describes a relation once a connection, so what is known of it lives as long.
    relations: Relations = field(default_factory=Relations)
    tables: dict[int, CapturedTable | None] = field(default_factory=dict)
    warning: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: threading.Timer | None = None
    rests: int = 0
    reported: float = 0.0

    def stretch(self, claim: Claim) -> Iterator[list[Message]]:
        """The messages of all transactions whose commit record lies in [start, end), in chunks of about CHUNK_BYTES.

        Begins by telling the server that everything before `start` is safe, unless lsn.flush.mode is manual: Spark
        asks for a stretch only when the one before it is committed. A lost connection is made anew, and what was
        already handed out is not repeated. Raises OffsetError when the log is lost, SourceError for a taken slot.
        """
        start, end = claim.start, claim.end
        assert start is not None
        assert end is not None
        self._wake()
        self.confirmed = 0 if self.config.text("lsn.flush.mode") == "manual" else start
        if self.connection is None or self.position != start:
            self.close()
        self.position = None
        with Pulse(self._interval, self._report) as pulse:
            yield from self._chunks(claim, end, pulse)
        self.position = end

    def _chunks(self, claim: Claim, end: int, pulse: Pulse) -> Iterator[list[Message]]:
        """The stretch, over as many connections as it takes."""
        delivered = 0
        backoff = Backoff(self.config)
        while True:
            try:
                if self.connection is None:
                    self._open(claim)
                    skip = delivered
                else:
                    skip = 0
                self._report()
                for chunk in self._receive(end, skip):
                    delivered += _countable(chunk)
                    backoff.reset()
                    with pulse.away():
                        yield chunk
                if self.warning is not None:
                    raise _ReplicationRefused(self.warning)
                return
            except (psycopg.OperationalError, SourceError) as error:  # noqa: PERF203  # the loop is the retrying
                self.close()
                if not _worth_retrying(error) and not is_listed(self.config, error):
                    raise _stream_error(self.config, claim, error) from error
                backoff.wait(error)

    def finished(self, last_commit: int | None) -> None:
        """Tell the planner, by way of pg_stat_replication.write_lsn, what the last transaction read was.

        The stream then waits for the next stretch, but not for long: a server that is to shut down waits for its
        readers to confirm what it sent, which only a next stretch does.
        """
        self.last_commit = last_commit
        try:
            self._report()
        except psycopg.OperationalError:
            # All of the stretch is read; the next one makes the connection anew.
            self.close()
            return
        self.idle = threading.Timer(IDLE_SECONDS, self._sleep, [self.rests])
        self.idle.daemon = True
        self.idle.start()

    def _wake(self) -> None:
        """From here on the timer of the last rest closes nothing, even if it has just run out."""
        with self.lock:
            self.rests += 1
            if self.idle is not None:
                self.idle.cancel()
                self.idle = None

    def _sleep(self, rest: int) -> None:
        """Close the connection when the rest it was timed for has lasted too long."""
        with self.lock:
            if rest == self.rests:
                self.close()

    def close(self) -> None:
        """Drop the connection and whatever was read ahead."""
        if self.connection is not None:
            self.connection.close()
        self.connection, self.position, self.pending = None, None, None
        self.relations.by_oid.clear()
        self.tables.clear()

    def _open(self, claim: Claim) -> None:
        name, publication = self.config.text("slot.name"), self.config.text("publication.name")
        assert claim.start is not None
        taken(self.config, self.application, claim)
        self.connection = connect(self.config, replication=True, application=self.application)
        options = {"proto_version": "1", "publication_names": publication, "messages": "true"}
        options |= slots.stream_parameters(self.config)
        listed = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(option), sql.Literal(value)) for option, value in options.items()
        )
        command = sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
            sql.Identifier(name), sql.SQL(format_lsn(claim.start)), listed
        )
        self.warning = None
        self.connection.add_notice_handler(self._warned)
        pgconn = self.connection.pgconn
        result = pgconn.exec_(command.as_bytes(self.connection))
        if result.status != pq.ExecStatus.COPY_BOTH:
            message = (result.error_message or b"").decode(errors="replace")
            # A connection that broke at this moment is no refusal.
            raise _ReplicationRefused(message) if pgconn.status == pq.ConnStatus.OK else _broken(message)
        pgconn.nonblocking = 1

    def _warned(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """Since PostgreSQL 18 a missing publication is only a warning, and the rows are left out."""
        if diagnostic.sqlstate == _NOT_READY:
            self.warning = diagnostic.message_primary

    def _receive(self, end: int, skip: int) -> Iterator[list[Message]]:
        """Chunks of messages up to `end`; the first `skip` countable ones were handed out before a reconnection."""
        assert self.connection is not None
        take = self.connection.pgconn.get_copy_data
        messages: list[Message] = []
        size = 0
        if self.pending is not None:
            if _place(self.pending) >= end:
                return
            messages.append(self.pending)
            size = len(self.pending)
            self.pending = None
        asker = _Asker()
        # The only loop over messages there is, so it does as little as can be.
        while True:
            length, data = take(1)
            if length > 0:
                if data[0] == _XLOG:
                    kind = data[XLOG_HEADER]
                    if kind in _NOTABLE:
                        if kind in _DESCRIPTIONS:
                            # Sent once a connection: it must not move the end of a chunk, or a repeat is cut otherwise.
                            messages.append(data)
                            continue
                        if _place(data) >= end:
                            self.pending = data
                            break
                    if skip:
                        skip -= 1
                        continue
                    messages.append(data)
                    size += length
                    if size >= CHUNK_BYTES:
                        yield messages
                        messages, size = [], 0
                        if time.monotonic() - self.reported >= self._interval:
                            self._report()
                elif self._keepalive(data) >= end:
                    break
            elif length == 0:
                self._wait(asker)
            else:
                raise _lost(self.connection)
        if messages:
            yield messages

    def _keepalive(self, data: Message) -> int:
        """Answer a keepalive if it asks for one; returns how far the server has come. Raises DecodeError."""
        if data[0] != _KEEPALIVE or len(data) != _KEEPALIVE_BYTES:
            raise DecodeError(f"unknown message {bytes(data[:1])!r} on the replication connection", remedy=CORRUPT)
        if data[17]:
            self._report()
        return int.from_bytes(data[1:9], "big")

    def _wait(self, asker: _Asker) -> None:
        """Wait for bytes; ask an idle server now and then how far it has come."""
        assert self.connection is not None
        pgconn = self.connection.pgconn
        if asker.due():
            self._report(ask=True)
        elif time.monotonic() - self.reported >= self._interval:
            self._report()
        select.select([pgconn.socket], [], [], min(asker.pause(), self._interval))
        pgconn.consume_input()

    def _report(self, ask: bool = False) -> None:
        """A standby status update: flushed is what Spark has committed, written the last transaction (see finished)."""
        assert self.connection is not None
        pgconn = self.connection.pgconn
        clock = int(time.time() * 1_000_000) - EPOCH_US
        pgconn.put_copy_data(
            struct.pack(">cqqqqB", b"r", self.last_commit or 0, self.confirmed, self.confirmed, clock, ask)
        )
        while pgconn.flush():
            select.select([], [pgconn.socket], [])
        self.reported = time.monotonic()

    @property
    def _interval(self) -> float:
        return self.config.number("status.update.interval.ms") / 1000


class _Asker:
    """When to ask an idle server for its position: at once, then at growing intervals while it is still decoding."""

    def __init__(self) -> None:
        self.interval = _ASK_SECONDS
        self.next = 0.0
        self.since = self.said = time.monotonic()

    def due(self) -> bool:
        now = time.monotonic()
        if now - self.said > _REPORT_SECONDS:
            self.said = now
            log.warning("the server has been decoding for %d s without a transaction for us", now - self.since)
        if now < self.next:
            return False
        self.next = now + self.interval
        self.interval = min(self.interval * 2, 1.0)
        return True

    def pause(self) -> float:
        return max(self.next - time.monotonic(), 0.001)


def _place(message: Message) -> int:
    """The LSN that tells which stretch a Begin or logical message belongs to; -1 for one inside a transaction.

    That of a transaction is its commit record's, that of a message outside any transaction its own record's.
    """
    begin = XLOG_HEADER + 1
    if message[XLOG_HEADER] == BEGIN:
        return int.from_bytes(message[begin : begin + 8], "big")
    if message[begin] & 1:
        return -1
    end = int.from_bytes(message[begin + 1 : begin + 9], "big")
    return record_start(end, len(message) - begin - _MESSAGE_FRAME)


def _countable(chunk: list[Message]) -> int:
    """How many messages come again, and once, when the stream is repeated (descriptions come as the server likes)."""
    kinds = bytes([message[XLOG_HEADER] for message in chunk])
    return len(kinds) - sum(kinds.count(kind) for kind in _DESCRIPTIONS)


class _ReplicationRefused(SourceError):
    """START_REPLICATION was refused; the text is the server's."""


def _lost(connection: psycopg.Connection) -> Exception:
    """The error for a COPY stream that ended: a broken connection, or the server's own error message."""
    pgconn = connection.pgconn
    result = pgconn.get_result() if pgconn.status == pq.ConnStatus.OK else None
    message = (
        result.error_message if result is not None else pgconn.error_message
    ) or b"the server closed the connection"
    text = message.decode(errors="replace").strip()
    fatal = ("replication slot", "WAL segment", "publication")
    return _ReplicationRefused(text) if any(sign in text for sign in fatal) else _broken(text)


def _broken(message: str) -> psycopg.OperationalError:
    return psycopg.OperationalError(message.strip() or "the server closed the connection")


def _worth_retrying(error: Exception) -> bool:
    if isinstance(error, _ReplicationRefused):
        return "is active for PID" in str(error)
    if isinstance(error, SourceError):
        return is_transient(error)
    # A connection that was up and broke: the server restarted, was stopped, or the network failed.
    return isinstance(error, psycopg.OperationalError)


_REFUSALS = (
    (
        "publication",
        "create the publication again with the captured tables, then start with a new checkpoint for a new snapshot: "
        "the server does not send what was written while there was none",
    ),
    ("WAL segment", "the position is lost: start with a new checkpoint; raise max_slot_wal_keep_size"),
    ("is active for PID", "stop that reader, or give this pipeline a slot.name of its own"),
    ("permission denied", "ALTER ROLE <database.user> REPLICATION"),
)


def _stream_error(config: Config, claim: Claim, error: Exception) -> Exception:
    if isinstance(error, SourceError) and not isinstance(error, _ReplicationRefused):
        return error
    if isinstance(error, _ReplicationRefused):
        with connect(config, application="tailrace control") as connection:
            lost = find(connection, config, claim)
        if lost is not None and not lost.is_trusted:
            return lost.error()
    said = first_line(error)
    remedy = next((text for sign, text in _REFUSALS if sign in said), "see the server's log")
    return SourceError(said, where=f"slot {config.text('slot.name')}", remedy=remedy)
