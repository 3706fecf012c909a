"""Reads a stretch of the log on an executor, with what a chunk of a snapshot adds and what is told beside it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

import psycopg

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.processors import reselect
from tailrace.connectors import reader_client
from tailrace.connectors.base import Chunk
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.ddl.schema_changes import SchemaChangeReader
from tailrace.connectors.postgres.log.decoder import LogDecoder
from tailrace.connectors.postgres.log.lookup import PostgresLookup
from tailrace.connectors.postgres.log.messages import LogicalMessages
from tailrace.connectors.postgres.log.protocol.framing import Packed
from tailrace.connectors.postgres.log.protocol.pgoutput import Relation, Relations
from tailrace.connectors.postgres.log.refusals import Interrupted
from tailrace.connectors.postgres.log.stream import About, LogStream, Wish
from tailrace.connectors.postgres.position import Claim, Seen
from tailrace.connectors.postgres.server.connect import connect, is_transient, server_errors
from tailrace.connectors.postgres.snapshot.fence import Visibility
from tailrace.connectors.reader_socket import ReaderLost, Request
from tailrace.connectors.reselect import Reselector
from tailrace.connectors.retry import Backoff, retrying
from tailrace.connectors.snapshots import ReadChunk
from tailrace.events.faults import Faults
from tailrace.events.heartbeat import heartbeat
from tailrace.events.notifications import Notice, notify
from tailrace.events.topics import TopicNaming
from tailrace.model.change import ChangeBatch, SnapshotRead, from_ipc
from tailrace.model.table import TableId
from tailrace.snapshot.window import Window


@dataclass
class Known:
    """What a worker knows of a pipeline's log: the tables that were described to it, as `config` captures them.

    `epoch` and `described` tell the reader process which descriptions these are, see Wish.
    """

    config: Config
    epoch: str = ""
    described: int = 0
    relations: Relations = field(default_factory=Relations)
    tables: dict[int, CapturedTable | None] = field(default_factory=dict)

    def see(self, about: About) -> None:
        """A block comes: over a new connection the server describes each table again."""
        if about.epoch != self.epoch:
            self.epoch, self.described = about.epoch, 0
            self.relations.by_oid.clear()
            self.tables.clear()


# By pipeline, kept in a worker process from one micro-batch to the next.
known: dict[str, Known] = {}


@dataclass(frozen=True)
class LogSplit:
    """A stretch of the log, [start, end) by commit records, for one task; `tables` are captured or not by then.

    `last_commit` precedes it; `heartbeat` (milliseconds since 1970) follows it where one is due, and a chunk of an
    incremental snapshot, which was read in between, and `notices` of that. `untouched` tables are left out, as their
    rows come later. `timeline`, `since_us` and `seen` are those of a Claim, `read_id` that of the chunk's SnapshotRead.
    """

    application: str
    start: int
    end: int
    last_commit: int | None
    heartbeat: int | None = None
    chunk: ReadChunk | None = None
    notices: tuple[Notice, ...] = ()
    tables: tuple[tuple[str, bool], ...] = ()
    xmin: int | None = None
    read_id: str = ""
    untouched: tuple[str, ...] = ()
    timeline: int | None = None
    since_us: int | None = None
    seen: Seen | None = None


def read_log(config: Config, split: LogSplit) -> Iterator[Chunk]:
    """The changes of a stretch. Raises SourceError, DecodeError."""
    config = replace(config, tables=split.tables)
    window = None if split.chunk is None else _window(split.chunk)
    for chunk in _decoded(config, split) if split.start < split.end else ():
        if window is not None:
            window.observe(*chunk.batches)
        yield chunk
    if window is not None:
        yield Chunk([replace(window.survivors(), read=SnapshotRead(split.read_id))])
    if split.notices:
        yield Chunk([], controls=notify(config, split.notices))
    if split.heartbeat is not None:
        yield Chunk([], controls=(heartbeat(TopicNaming(config), split.heartbeat),))


def _decoded(config: Config, split: LogSplit) -> Iterator[Chunk]:
    about = known.get(split.application)
    if about is None or about.config != config:
        about = known[split.application] = Known(config)
    wish = reselect(config)
    with ExitStack() as opened:
        descriptions = opened.enter_context(closing(Descriptions(config)))
        decoder = LogDecoder(descriptions.describe, split.last_commit, about.tables, about.relations)
        decoder.messages, decoder.xmin = LogicalMessages.of(config), split.xmin
        decoder.faults = Faults.of(config)
        decoder.schema_changes = SchemaChangeReader.of(config)
        if wish is not None:
            decoder.reselector = opened.enter_context(
                closing(Reselector(wish, PostgresLookup(config, wish.by_event_key)))
            )
        for messages in opened.enter_context(closing(_messages(config, split, about))):
            chunk = decoder.decode(messages)
            yield _without(chunk, split.untouched) if split.untouched else chunk


def _messages(config: Config, split: LogSplit, about: Known) -> Generator[Packed, None, None]:
    """The messages of a split, over as many connections and reader processes as it takes."""
    # The stream is the same whatever is captured of it.
    config = replace(config, tables=())
    claim = Claim(split.start, split.end, split.timeline, split.since_us, seen=split.seen)
    delivered, backoff = 0, Backoff(config)
    while True:
        wish = Wish(claim, split.last_commit, delivered, about.epoch, about.described)
        try:
            with closing(reader_client.ask(Request(LogStream, config, split.application, wish))) as blocks:
                for block in blocks:
                    about.see(block.about)
                    yield Packed(block.about.lengths, block.data)
                    about.described = block.about.described
                    delivered += block.about.countable
                    backoff.reset()
            return
        except (Interrupted, ReaderLost) as error:
            backoff.wait(error)


def _without(chunk: Chunk, tables: tuple[str, ...]) -> Chunk:
    return replace(chunk, batches=[batch for batch in chunk.batches if str(batch.table.id) not in tables])


class Descriptions:
    """Describes the relations of one read; the connection is made for the first one, and used for all others."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._filter = TableFilter.from_config(config)
        self._connection: psycopg.Connection | None = None

    def describe(self, relation: Relation) -> CapturedTable | None:
        """A relation's table, None when it is not captured. Raises SourceError."""
        if not self._filter.captures(TableId(self.config.text("database.dbname"), relation.schema, relation.table)):
            return None
        with server_errors(f"table {relation} cannot be described"):
            return retrying(self.config, lambda: self._described(relation), is_transient)

    def _described(self, relation: Relation) -> CapturedTable | None:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.config, application="tailrace catalog")
        return Catalog(self._connection, self.config).relation(relation)

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()


def _window(chunk: ReadChunk) -> Window:
    rows = from_ipc(chunk.rows)
    assert isinstance(rows, ChangeBatch)
    return Window(rows, Visibility.parse(chunk.fence), chunk.identity)
