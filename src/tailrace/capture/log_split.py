"""A log range for one task, with the rows of a snapshot chunk and the notifications that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from tailrace.capture.heartbeat import heartbeat
from tailrace.config import Config
from tailrace.config.topics import TopicNaming
from tailrace.connectors.base import Chunk
from tailrace.connectors.notifications import Notice, notify
from tailrace.connectors.snapshots import Fence, ReadChunk
from tailrace.model.change import ChangeBatch, SnapshotRead, from_ipc, note
from tailrace.model.schema_change import DROP
from tailrace.model.table import TableSchema
from tailrace.snapshot.table_note import TableNote
from tailrace.snapshot.window import Window


@dataclass(frozen=True)
class LogSplit:
    """A range of the log, whose connector alone knows what that is (None: none); `tables` are captured or not by then.

    After it comes a chunk of an incremental snapshot, which was read in between, then the `notices` of that, then a
    `heartbeat` (milliseconds since 1970) if one is due. `untouched` tables are left out, as their rows come later.
    `read_id` is that of the chunk's SnapshotRead. `notes` are for sinks that keep a table's content: what was found
    out about tables outside the log, once the log is read up to the end of the range.
    """

    range: Any
    heartbeat: int | None = None
    chunk: ReadChunk | None = None
    notices: tuple[Notice, ...] = ()
    _: KW_ONLY
    tables: tuple[tuple[str, bool], ...] = ()
    untouched: tuple[str, ...] = ()
    read_id: str = ""
    notes: tuple[TableNote, ...] = ()


def read_log(
    config: Config,
    split: LogSplit,
    changes: Callable[[Config, Any], Iterator[Chunk]],
    fence: Callable[[str], Fence],
) -> Iterator[Chunk]:
    """The changes of a split; the connector reads a range by `changes`, and a fence from its text by `fence`.

    Raises SourceError, DecodeError.
    """
    config = replace(config, tables=split.tables)
    window = None if split.chunk is None else _window(split.chunk, fence)
    if window is not None and split.chunk is not None and split.chunk.begins and split.chunk.request is not None:
        # Before the log, whose changes supersede rows of the chunk.
        begins = SnapshotRead(split.read_id, request=split.chunk.request, begins=True)
        yield Chunk([note(window.rows.table, read=begins)])
    for decoded in changes(config, split.range) if split.range is not None else ():
        chunk = _without(decoded, split.untouched) if split.untouched else decoded
        if window is not None:
            window.observe(*chunk.batches)
        yield chunk
    if window is not None and split.chunk is not None:
        read = SnapshotRead(split.read_id, request=split.chunk.request)
        yield Chunk([replace(window.survivors(), read=read)])
    if split.notes:
        yield Chunk([each.batch(split.read_id) for each in split.notes])
    if split.notices:
        yield Chunk([], controls=notify(config, split.notices))
    if split.heartbeat is not None:
        yield Chunk([], controls=(heartbeat(TopicNaming(config), split.heartbeat),))


def _without(chunk: Chunk, tables: tuple[str, ...]) -> Chunk:
    """A chunk without the changes of tables whose rows come later; what got its rows from one of them lacks these."""
    batches = []
    for batch in chunk.batches:
        change = batch.schema_change
        is_ours, previous = str(batch.table.id) not in tables, None if change is None else change.previous
        was_ours = previous is None or str(previous) not in tables
        if is_ours and was_ours:
            batches.append(batch)
        elif is_ours:
            why = f"it was {previous}, which was not read yet when it was renamed"
            batches.append(note(TableSchema(batch.table.id, (), (), ()), lacking=why))
        elif was_ours and change is not None and previous is not None:
            dropped = replace(change, kind=DROP, previous=None)
            batches.append(replace(batch, table=replace(batch.table, id=previous), schema_change=dropped))
    return replace(chunk, batches=batches)


def _window(chunk: ReadChunk, fence: Callable[[str], Fence]) -> Window:
    rows = from_ipc(chunk.rows)
    assert isinstance(rows, ChangeBatch)
    return Window(rows, fence(chunk.fence), chunk.identity)
