"""The log of one pipeline, kept open in a reader process between micro-batches, so that nothing is decoded twice.

A stretch of the log is [start, end) by the LSN of commit records, which is also what the server skips by when a
stream starts at `start`: a transaction lies in exactly one stretch, whole. The first Begin of a later transaction ends
a stretch; on an idle server a keepalive that has passed `end` does. What was received beyond `end` waits here for the
next stretch, which asks for it if it begins where this one ended.
"""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.connectors.postgres.log.protocol.framing import XLOG_HEADER, pack
from tailrace.connectors.postgres.log.protocol.pgoutput import BEGIN, COMMIT, MESSAGE, RELATION, TYPE
from tailrace.connectors.postgres.log.protocol.wal import record_start
from tailrace.connectors.postgres.log.refusals import broken, ended, told, without_publication
from tailrace.connectors.postgres.log.replication import XLOG, Asker, Message, Replication, Silent
from tailrace.connectors.postgres.position import Claim
from tailrace.connectors.postgres.server.connect import connect, first_line, planner_application
from tailrace.connectors.postgres.server.lost_log import taken
from tailrace.connectors.reader_socket import Block
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

# Wire bytes that cross to a worker together: large enough that numpy's fixed costs vanish, small enough for its memory.
CHUNK_BYTES = 4 << 20
Take = Callable[[int], tuple[int, Message]]
Counted = tuple[list[Message], int]
_DESCRIPTIONS = (RELATION, TYPE)
_NOTABLE = frozenset((BEGIN, COMMIT, MESSAGE, *_DESCRIPTIONS))
# Of a Message: flags, LSN and the content's length, which stand beside prefix (with its NUL) and content.
_MESSAGE_FRAME = 13
_COMMIT_END = slice(XLOG_HEADER + 10, XLOG_HEADER + 18)
# A server that is busy with one huge transaction may be as silent as a dead one, so it gets more time at each try.
_MOST_PATIENCE = 16


@dataclass(frozen=True)
class Wish:
    """A stretch of the log that a worker wants; `last_commit` is the end of the last transaction before it.

    `skip` countable messages of it are known already, from an answer that broke off. `epoch` and `described` say which
    descriptions of tables the worker has: the connection that they came over, and the number of the last one.
    """

    claim: Claim
    last_commit: int | None
    skip: int = 0
    epoch: str = ""
    described: int = 0


@dataclass(frozen=True)
class About:
    """Of a block of messages: their lengths, and how many are countable: come again, once, when the stream is repeated.

    Descriptions come as the server likes. `epoch` and `described` are to be given in the next Wish.
    """

    lengths: bytes
    countable: int
    epoch: str
    described: int


class LogStream:
    """Implements Source. `position` is the end of the last stretch, if that was read whole over this connection."""

    def __init__(self, config: Config, application: str) -> None:
        self.config = config
        self.application = application
        self.position: int | None = None
        self._replication: Replication | None = None
        self._patience = 1
        self._is_reading = False

    def read(self, wish: Wish, client: socket.socket) -> Generator[Block, None, None]:
        """The messages of all transactions whose commit record lies in [start, end), in blocks of about CHUNK_BYTES.

        Begins by telling the server that everything before `start` is safe, unless lsn.flush.mode is manual: Spark
        asks for a stretch only when the one before it is committed. Raises OffsetError when the log is lost,
        Interrupted for a lost connection, SourceError for a taken slot.
        """
        claim = wish.claim
        assert claim.start is not None
        assert claim.end is not None
        if self.position != claim.start:
            self.close()
        self.position, self._is_reading = None, True
        try:
            replication = self._opened(claim, claim.start)
            replication.confirmed = 0 if self.config.text("lsn.flush.mode") == "manual" else claim.start
            replication.last_commit = wish.last_commit
            replication.report()
            yield from self._blocks(replication, wish, claim.end, client)
            if replication.warning is not None:
                raise without_publication(replication.warning)
            replication.report()
            self.position, self._patience = claim.end, 1
        except (psycopg.OperationalError, SourceError) as error:
            self._give_up(error)
            raise told(self.config, claim, error) from error
        finally:
            self._is_reading = False
            if self.position is None:
                self.close()

    def _opened(self, claim: Claim, start: int) -> Replication:
        if self._replication is None:
            taken(self.config, self.application, claim)
            self._replication = Replication.open(self.config, self.application, start, self._patience)
        return self._replication

    def _blocks(self, replication: Replication, wish: Wish, end: int, client: socket.socket) -> Iterator[Block]:
        known = wish.described if wish.epoch == replication.epoch else 0
        news: list[Message] = [message for number, message in replication.descriptions.values() if number > known]
        if news:
            yield _block(replication, news, 0)
        for messages, countable in self._receive(replication, end, wish.skip, Asker(client)):
            yield _block(replication, messages, countable)

    def _receive(self, replication: Replication, end: int, skip: int, asker: Asker) -> Iterator[Counted]:
        """Messages up to `end` and how many of them are countable; the first `skip` countable ones are left out."""
        live: Take = replication.connection.pgconn.get_copy_data
        take: Take = replication.take_ahead
        messages: list[Message] = []
        size = descriptions = 0
        commit: Message | None = None
        # The only loop over messages there is, so it does as little as can be.
        while True:
            length, data = take(1)
            if length > 0:
                if data[0] == XLOG:
                    kind = data[XLOG_HEADER]
                    if kind in _NOTABLE:
                        if kind in _DESCRIPTIONS:
                            # Sent once a connection: it must not move the end of a block, or a repeat is cut otherwise.
                            replication.describe(kind, data)
                            messages.append(data)
                            descriptions += 1
                            continue
                        if kind == COMMIT:
                            commit = data
                        elif _place(data) >= end:
                            replication.put_back(data)
                            break
                    if skip:
                        skip -= 1
                        continue
                    messages.append(data)
                    size += length
                    if size >= CHUNK_BYTES:
                        yield messages, len(messages) - descriptions
                        self._still(replication)
                        messages, size, descriptions = [], 0, 0
                        take = replication.take_ahead
                elif replication.keepalive(data) >= end:
                    break
            elif length < 0:
                raise ended(replication.connection)
            elif take is live:
                replication.await_bytes(asker)
            elif replication.reached >= end:
                break
            else:
                take = live
        if commit is not None:
            replication.last_commit = int.from_bytes(commit[_COMMIT_END], "big")
        if messages:
            yield messages, len(messages) - descriptions

    def _still(self, replication: Replication) -> None:
        """After a block was sent. Raises OperationalError if the connection was lost meanwhile, see wait."""
        if self._replication is not replication:
            raise broken("the connection was lost while rows were handed over")
        if replication.is_report_due:
            replication.report()

    def close(self) -> None:
        """Drop the connection and whatever was read ahead."""
        if self._replication is not None:
            self._replication.close()
        self._replication, self.position = None, None

    def _give_up(self, error: Exception) -> None:
        """Close a connection that failed."""
        if isinstance(error, Silent):
            self._patience = min(self._patience * 2, _MOST_PATIENCE)
        self.close()

    def wait(
        self, readers: list[socket.socket], writers: list[socket.socket], seconds: float
    ) -> tuple[list[socket.socket], list[socket.socket]]:
        """See Source.wait. Reads ahead; a lost connection is closed, and made anew when somebody reads."""
        deadline = time.monotonic() + seconds
        while True:
            replication, pause = self._replication, deadline - time.monotonic()
            own: list[Any] = []
            if replication is not None:
                pause = min(pause, replication.reported + replication.interval - time.monotonic())
                own = [] if replication.is_full else [replication.connection.pgconn.socket]
            ready, writable, _ = select.select([*readers, *own], writers, [], max(pause, 0))
            if replication is not None:
                self._tend(replication, None if not own else own[0] in ready)
            readable = [reader for reader in readers if reader in ready]
            if readable or writable or time.monotonic() >= deadline:
                return readable, writable

    def _tend(self, replication: Replication, is_readable: bool | None) -> None:
        """Take what has come, ask whether the server is there; None: nothing is taken for now."""
        try:
            if is_readable is None:
                replication.heard = time.monotonic()
            else:
                replication.listen(is_readable)
                replication.read_ahead()
            if replication.is_report_due:
                replication.report(ask=True)
        except (psycopg.OperationalError, SourceError) as error:
            log.info("slot %s is released: %s", self.config.text("slot.name"), first_line(error))
            self._give_up(error)
            return
        if replication.is_stopping and not self._is_reading:
            log.info("slot %s is released, as the server stops", self.config.text("slot.name"))
            self.close()

    def is_wanted(self) -> bool:
        """See Source.is_wanted: the slot is held, and the planner is connected."""
        if self._replication is None:
            return False
        try:
            with connect(self.config, application=f"{self.application} control") as control:
                found = control.execute(
                    "SELECT FROM pg_stat_activity WHERE application_name = %s", [planner_application(self.application)]
                ).fetchone()
        except (SourceError, psycopg.Error) as error:
            log.info("whether the pipeline still runs is unknown: %s", first_line(error))
            return False
        return found is not None


def _block(replication: Replication, messages: list[Message], countable: int) -> Block:
    packed = pack(messages)
    return Block(About(packed.lengths, countable, replication.epoch, replication.described), packed.data)


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
