"""Reads a range of the log on an executor."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import KW_ONLY, dataclass, field, replace

import psycopg

from tailrace.config import Config
from tailrace.config.failure_handling import FailureHandling
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.config.processors import reselect
from tailrace.connectors import reader_client
from tailrace.connectors.base import Chunk
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.enum_labels import Labels
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.ddl.schema_changes import SchemaChangeReader
from tailrace.connectors.postgres.log.computed import Computed
from tailrace.connectors.postgres.log.decoder import LogDecoder
from tailrace.connectors.postgres.log.lookup import PostgresLookup
from tailrace.connectors.postgres.log.messages import LogicalMessages
from tailrace.connectors.postgres.log.protocol.framing import Packed, packed
from tailrace.connectors.postgres.log.protocol.pgoutput import Relation, Relations
from tailrace.connectors.postgres.log.refusals import Interrupted
from tailrace.connectors.postgres.log.stream import About, LogStream, RangeRequest
from tailrace.connectors.postgres.log.structures import LogStructures
from tailrace.connectors.postgres.position import LogClaim, SeenLog
from tailrace.connectors.postgres.server.connect import connect, is_transient, server_errors
from tailrace.connectors.reader_socket import AnswerBlock, ReaderLost, ReaderRequest
from tailrace.connectors.reselect import Reselector
from tailrace.connectors.retry import Backoff, retrying
from tailrace.model.table import TableId


@dataclass
class DescribedTables:
    """The tables that the server has described to this worker, as `config` captures them.

    Their enums have the `labels` of a LogRange.
    `epoch` and `described` tell the reader process which descriptions these are, see RangeRequest.
    """

    config: Config
    labels: Labels | None
    epoch: str = ""
    described: int = 0
    _: KW_ONLY
    relations: Relations = field(default_factory=Relations)
    tables: dict[int, CapturedTable | None] = field(default_factory=dict)
    structures: LogStructures = field(default_factory=LogStructures)

    def see(self, about: About) -> None:
        """Forget the descriptions if a block comes over a new connection: the server describes each table again."""
        if about.epoch != self.epoch:
            self.epoch, self.described = about.epoch, 0
            self.relations.by_oid.clear()
            self.tables.clear()
            self.structures = LogStructures()


# Each column of each batch costs 0.1 ms however few its rows are, as much as 5 kB of the log, so that with many of them
# more of the log is decoded at once than the 4 MB of a block.
_COLUMN_BYTES, _BLOCK_BYTES, _MOST_BYTES = 64 << 10, 4 << 20, 64 << 20


@dataclass
class DecodeSize:
    """How many bytes of messages are decoded at once: more for tables with many columns; 0: each block alone."""

    bytes: int = 0

    def see(self, chunk: Chunk) -> None:
        """Adapt the size to a chunk that was decoded."""
        columns = sum(len(batch.table.columns) for batch in chunk.batches)
        wanted = min(columns * _COLUMN_BYTES, _MOST_BYTES)
        self.bytes = wanted if wanted > _BLOCK_BYTES else 0


# By pipeline, kept in a worker process from one micro-batch to the next.
described: dict[str, DescribedTables] = {}


@dataclass(frozen=True)
class LogRange:
    """A range of the log, [start, end) by commit records, which `last_commit` precedes.

    `timeline`, `since_us` and `seen` are those of a LogClaim. `xmin` is what events show of the slot,
    `labels` what their schemas show of enums: the catalog's when the range was planned, so that a range that is read
    again has the same schemas. The log does not tell of labels.
    """

    application: str
    start: int
    end: int
    last_commit: int | None
    _: KW_ONLY
    xmin: int | None = None
    timeline: int | None = None
    since_us: int | None = None
    seen: SeenLog | None = None
    labels: Labels | None = None


def changes(config: Config, wanted: LogRange) -> Iterator[Chunk]:
    """The changes of a range. Raises SourceError, DecodeError."""
    if wanted.start < wanted.end:
        yield from _decoded(config, wanted)


def _decoded(config: Config, wanted: LogRange) -> Iterator[Chunk]:
    about = described.get(wanted.application)
    if about is None or (about.config, about.labels) != (config, wanted.labels):
        about = described[wanted.application] = DescribedTables(config, wanted.labels)
    reselection = reselect(config)
    with ExitStack() as opened:
        descriptions = opened.enter_context(closing(Descriptions(config, about)))
        computed, reselector = opened.enter_context(closing(Computed(config))), None
        if reselection is not None:
            lookup = PostgresLookup(config, reselection.by_event_key)
            reselector = opened.enter_context(closing(Reselector(reselection, lookup)))
        decoder = LogDecoder(
            descriptions.describe,
            wanted.last_commit,
            about.tables,
            about.relations,
            messages=LogicalMessages.of(config),
            schema_changes=SchemaChangeReader.of(config),
            reselector=reselector,
            xmin=wanted.xmin,
            has_marks=config[PROVIDE_TRANSACTION_METADATA],
            failures=FailureHandling.of(config),
            prepare=descriptions.prepare,
            computed=computed,
        )
        size = DecodeSize()
        for messages in opened.enter_context(closing(_messages(config, wanted, about, size))):
            chunk = decoder.decode(messages)
            size.see(chunk)
            yield chunk


def _messages(
    config: Config, wanted: LogRange, about: DescribedTables, size: DecodeSize
) -> Generator[Packed, None, None]:
    """The messages of a range, over as many connections and reader processes as it takes."""
    # The stream is the same whatever is captured of it.
    config = replace(config, tables=())
    claim = LogClaim(wanted.start, wanted.end, wanted.timeline, wanted.since_us, seen=wanted.seen)
    delivered, backoff = 0, Backoff(config)
    while True:
        request = RangeRequest(claim, wanted.last_commit, delivered, about.epoch, about.described)
        try:
            with closing(reader_client.ask(ReaderRequest(LogStream, config, wanted.application, request))) as blocks:
                for joined in _joined(blocks, size):
                    last = joined[-1].about
                    about.see(last)
                    yield packed([Packed(block.about.lengths, block.data) for block in joined])
                    about.described = last.described
                    delivered += sum(block.about.countable for block in joined)
                    backoff.reset()
            return
        except (Interrupted, ReaderLost) as error:
            backoff.wait(error)


def _joined(blocks: Iterable[AnswerBlock], most: DecodeSize) -> Iterator[list[AnswerBlock]]:
    """The blocks of one answer, which come over one connection, up to `most` bytes at a time."""
    held: list[AnswerBlock] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block.data)
        if size >= most.bytes:
            yield held
            held, size = [], 0
    if held:
        yield held


class Descriptions:
    """Describes the relations of one read; the connection is made for the first one, and used for all others."""

    def __init__(self, config: Config, about: DescribedTables) -> None:
        self.config = config
        self._about = about
        self._filter = TableFilter.from_config(config)
        self._connection: psycopg.Connection | None = None
        self._catalog: Catalog | None = None

    def prepare(self, relations: Sequence[Relation]) -> None:
        """Look up relations that come now, all at once. Raises SourceError."""
        with server_errors(f"{len(relations)} tables cannot be described"):
            retrying(self.config, lambda: self._prepared(relations), is_transient)

    def describe(self, relation: Relation) -> CapturedTable | None:
        """A relation's table, None when it is not captured. Raises SourceError."""
        if not self._captures(relation):
            return None
        with server_errors(f"table {relation} cannot be described"):
            return retrying(self.config, lambda: self._described(relation), is_transient)

    def _prepared(self, relations: Sequence[Relation]) -> None:
        if not any(map(self._captures, relations)):
            return
        self._catalog = self._new_catalog(self._connected())
        self._catalog.prepare(relations)

    def _described(self, relation: Relation) -> CapturedTable | None:
        connection = self._connected()
        if self._catalog is None or self._catalog.connection is not connection:
            self._catalog = self._new_catalog(connection)
        captured = self._catalog.relation(relation)
        return None if captured is None else self._about.structures.shared(relation, captured)

    def _new_catalog(self, connection: psycopg.Connection) -> Catalog:
        return Catalog(connection, self.config, self._about.labels, self._about.structures.values)

    def _captures(self, relation: Relation) -> bool:
        return self._filter.captures(TableId(self.config[DATABASE_DBNAME], relation.schema, relation.table))

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.config, application="tailrace catalog")
        return self._connection

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
