"""Keeps the log of one pipeline open in a reader process between micro-batches, so that nothing is decoded twice.

A range of the log is [start, end) by the LSN of commit records, which is also what the server skips by when a
stream starts at `start`: a transaction lies in exactly one range, whole. The first Begin of a later transaction ends
a range; on an idle server a keepalive that has passed `end` does. What was received beyond `end` waits here for the
next range, which gets it if it begins where this one ended.
"""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg

from tailrace.config import Config
from tailrace.connectors.postgres.log.protocol.framing import PADDING
from tailrace.connectors.postgres.log.protocol.segment import Segment, descriptions, segment
from tailrace.connectors.postgres.log.refusals import broken, stream_error, without_publication
from tailrace.connectors.postgres.log.replication import Asker, Replication, Silent
from tailrace.connectors.postgres.options import LSN_FLUSH_MODE, PUBLICATION_NAME, SLOT_NAME
from tailrace.connectors.postgres.position import LogClaim
from tailrace.connectors.postgres.server.connect import connect, first_line, planner_application
from tailrace.connectors.postgres.server.lost_log import taken
from tailrace.connectors.reader_socket import AnswerBlock
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

# Wire bytes that cross to a worker together: large enough that numpy's fixed costs vanish, small enough for its memory.
CHUNK_BYTES = 4 << 20
Counted = tuple[Segment, npt.NDArray[np.bool_]]
# A server that is busy with one huge transaction may be as silent as a dead one, so it gets more time at each try.
_MOST_PATIENCE = 16


@dataclass(frozen=True)
class RangeRequest:
    """The range of the log that a worker requests; `last_commit` is the end of the last transaction before it.

    `skip` countable messages of it were received before the connection was lost. `epoch` and `described` say which
    descriptions of tables the worker has: the connection that they came over, and the number of the last one.
    """

    claim: LogClaim
    last_commit: int | None
    skip: int = 0
    epoch: str = ""
    described: int = 0


@dataclass(frozen=True)
class About:
    """Describes a block: the lengths of its messages, and how many are countable: a repeated stream sends those again.

    Descriptions of tables are not countable: the server decides when it sends one. The next RangeRequest contains
    `epoch` and `described`.
    """

    lengths: bytes
    countable: int
    epoch: str
    described: int


class LogStream:
    """Implements Source. `position` is the end of the last range, if that was read whole over this connection."""

    def __init__(self, config: Config, application: str) -> None:
        self.config = config
        self.application = application
        self.position: int | None = None
        self._replication: Replication | None = None
        self._patience = 1
        self._is_reading = False

    def read(self, wanted: RangeRequest, client: socket.socket) -> Generator[AnswerBlock, None, None]:
        """The messages of all transactions whose commit record lies in [start, end), in blocks of about CHUNK_BYTES.

        Begins by telling the server that everything before `start` is safe, unless lsn.flush.mode is manual: Spark
        requests a range only when the one before it is committed. Raises OffsetError when the log is lost,
        Interrupted for a lost connection, SourceError for a taken slot.
        """
        claim = wanted.claim
        assert claim.start is not None
        assert claim.end is not None
        if self.position != claim.start:
            self.close()
        self.position, self._is_reading = None, True
        try:
            replication = self._opened(claim, claim.start)
            replication.confirmed = 0 if self.config[LSN_FLUSH_MODE] == "manual" else claim.start
            replication.last_commit = wanted.last_commit
            replication.report()
            yield from self._blocks(replication, wanted, claim.end, client)
            if replication.warning is not None:
                raise without_publication(self.config[PUBLICATION_NAME])
            replication.report()
            self.position, self._patience = claim.end, 1
        except (psycopg.OperationalError, SourceError) as error:
            self._give_up(error)
            raise stream_error(self.config, claim, error) from error
        finally:
            self._is_reading = False
            if self.position is None:
                self.close()

    def _opened(self, claim: LogClaim, start: int) -> Replication:
        if self._replication is None:
            taken(self.config, self.application, claim)
            self._replication = Replication.open(self.config, self.application, start, self._patience)
        return self._replication

    def _blocks(
        self, replication: Replication, wanted: RangeRequest, end: int, client: socket.socket
    ) -> Iterator[AnswerBlock]:
        last_described = wanted.described if wanted.epoch == replication.epoch else 0
        news = [message for number, message in replication.descriptions.values() if number > last_described]
        if news:
            yield _block(replication, [segment(news)], 0)
        gathered, size, countable = list[Segment](), 0, 0
        for messages, described in self._receive(replication, end, wanted.skip, Asker(client)):
            # Descriptions are sent once a connection: they must not move the end of a block, or a repeat is cut
            # otherwise.
            sizes = np.cumsum(np.where(described, 0, messages.lengths.astype(np.int64)))
            rest, done = messages, 0
            while size + (int(sizes[-1]) - done) >= CHUNK_BYTES:
                row = int(np.searchsorted(sizes, CHUNK_BYTES - size + done)) + 1
                already = len(messages) - len(rest)
                part, rest = rest.cut(row - already)
                countable += int((~described[already:row]).sum())
                yield _block(replication, [*gathered, part], countable)
                self._still(replication)
                gathered, size, countable, done = [], 0, 0, int(sizes[row - 1])
                if not len(rest):
                    break
            if len(rest):
                gathered.append(rest)
                size += int(sizes[-1]) - done
                countable += int((~described[len(messages) - len(rest) :]).sum())
        if gathered:
            yield _block(replication, gathered, countable)

    def _receive(self, replication: Replication, end: int, skip: int, asker: Asker) -> Iterator[Counted]:
        """Messages up to `end` and which of them are descriptions; the first `skip` other ones are left out."""
        commit: int | None = None
        while True:
            messages = replication.take()
            if messages is None:
                if replication.reached >= end:
                    break
                replication.await_bytes(asker)
                continue
            kinds = messages.kinds()
            first = messages.first_from(end, kinds)
            is_end = first < len(messages)
            if is_end:
                messages, rest = messages.cut(first)
                kinds = kinds[:first]
                replication.put_back(rest)
            described = descriptions(kinds)
            for row in np.flatnonzero(described).tolist():
                replication.describe(int(kinds[row]), messages.payload(row))
            last = messages.last_commit(kinds)
            commit = commit if last is None else last
            if skip:
                wanted = described | (np.cumsum(~described) > skip)
                skip -= min(skip, int((~described).sum()))
                messages, described = messages.select(wanted), described[wanted]
            if len(messages):
                yield messages, described
            if is_end:
                break
            replication.gather_more(asker)
        if commit is not None:
            replication.last_commit = commit

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
        """Wait for a socket, and read ahead; a lost connection is closed, and opened again by the next read."""
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
            if ready and self._replication is not None:
                # Let bytes gather, but a worker need not wait for them.
                readable, writable = self._replication.gather(readers, writers)
                if readable or writable:
                    return readable, writable

    def _tend(self, replication: Replication, is_readable: bool | None) -> None:
        """Take what has come, ask whether the server is there; None: nothing is taken for now."""
        try:
            if is_readable is None:
                replication.heard = time.monotonic()
            elif is_readable:
                replication.read_ahead()
            else:
                replication.still_there()
            if replication.is_report_due:
                replication.report(ask=True)
        except (psycopg.OperationalError, SourceError) as error:
            log.info("slot %s is released: %s", self.config[SLOT_NAME], first_line(error))
            self._give_up(error)
            return
        if replication.is_stopping and not self._is_reading:
            log.info("slot %s is released, as the server stops", self.config[SLOT_NAME])
            self.close()

    def is_wanted(self) -> bool:
        """Whether the process goes on without a request: the slot is held, and the planner is connected."""
        if self._replication is None:
            return False
        try:
            with connect(self.config, application=f"{self.application} control") as control:
                row = control.execute(
                    "SELECT FROM pg_stat_activity WHERE application_name = %s", [planner_application(self.application)]
                ).fetchone()
        except (SourceError, psycopg.Error) as error:
            log.info("whether the pipeline still runs is unknown: %s", first_line(error))
            return False
        return row is not None


def _block(replication: Replication, parts: list[Segment], countable: int) -> AnswerBlock:
    lengths = b"".join(part.lengths.tobytes() for part in parts)
    data = b"".join([*(part.data for part in parts), bytes(PADDING)])
    return AnswerBlock(About(lengths, countable, replication.epoch, replication.described), data)
