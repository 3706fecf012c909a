"""Reads a stretch of the log on an executor, with what a chunk of a snapshot adds and what is told beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tailrace.config import Config
from tailrace.config.processors import reselect
from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.catalog import CapturedTable, Catalog
from tailrace.connectors.postgres.connect import connect, is_transient, server_errors
from tailrace.connectors.postgres.incremental import ReadChunk, visibility
from tailrace.connectors.postgres.log import LogDecoder
from tailrace.connectors.postgres.messages import LogicalMessages
from tailrace.connectors.postgres.position import Claim, Seen
from tailrace.connectors.postgres.protocol.pgoutput import Relation
from tailrace.connectors.postgres.reselect import Reselector
from tailrace.connectors.postgres.schema_changes import SchemaChangeReader
from tailrace.connectors.postgres.stream import LogStream
from tailrace.connectors.retry import retrying
from tailrace.events.faults import Faults
from tailrace.events.heartbeat import heartbeat
from tailrace.events.notifications import Notice, notify
from tailrace.events.topics import TopicNaming
from tailrace.model.change import ChangeBatch, from_ipc
from tailrace.snapshot.window import Window

# One stream a pipeline in a worker process, kept from one micro-batch to the next.
streams: dict[str, LogStream] = {}


@dataclass(frozen=True)
class LogSplit:
    """A stretch of the log, [start, end) by commit records, for one task; `tables` are captured or not by then.

    `last_commit` precedes it; `heartbeat` (milliseconds since 1970) follows it where one is due, and a chunk of an
    incremental snapshot, which was read in between, and `notices` of that. `untouched` tables are left out, as their
    rows come later. `timeline`, `since_us` and `seen` are those of a Claim.
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
        yield Chunk([window.survivors()])
    if split.notices:
        yield Chunk([], controls=notify(config, split.notices))
    if split.heartbeat is not None:
        yield Chunk([], controls=(heartbeat(TopicNaming(config), split.heartbeat),))


def _decoded(config: Config, split: LogSplit) -> Iterator[Chunk]:
    stream = _stream(config, split.application)
    decoder = LogDecoder(
        lambda relation: _describe(config, relation), split.last_commit, stream.tables, stream.relations
    )
    decoder.messages, decoder.xmin = LogicalMessages.of(config), split.xmin
    decoder.faults = Faults.of(config)
    decoder.schema_changes = SchemaChangeReader.of(config)
    wish = reselect(config)
    decoder.reselector = None if wish is None else Reselector(config, wish)
    try:
        claim = Claim(split.start, split.end, split.timeline, split.since_us, seen=split.seen)
        for messages in stream.stretch(claim):
            chunk = decoder.decode(messages)
            yield _without(chunk, split.untouched) if split.untouched else chunk
    finally:
        if decoder.reselector is not None:
            decoder.reselector.close()
    stream.finished(decoder.last_commit)


def _without(chunk: Chunk, tables: tuple[str, ...]) -> Chunk:
    return replace(chunk, batches=[batch for batch in chunk.batches if str(batch.table.id) not in tables])


def _stream(config: Config, application: str) -> LogStream:
    """The pipeline's stream of this process; not one of an earlier query under another configuration."""
    stream = streams.get(application)
    if stream is not None and stream.config != config:
        stream.close()
        stream = None
    if stream is None:
        stream = streams[application] = LogStream(config, application)
    return stream


def _describe(config: Config, relation: Relation) -> CapturedTable | None:
    """A relation's table, by a connection of the moment: descriptions are rare."""

    def attempt() -> CapturedTable | None:
        with connect(config, application="tailrace catalog") as connection:
            return Catalog(connection, config).relation(relation)

    with server_errors(f"table {relation} cannot be described"):
        return retrying(config, attempt, is_transient)


def _window(chunk: ReadChunk) -> Window:
    rows = from_ipc(chunk.rows)
    assert isinstance(rows, ChangeBatch)
    return Window(rows, visibility(chunk), "txId", chunk.identity)
