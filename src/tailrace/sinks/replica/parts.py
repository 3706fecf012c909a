"""A table's changes cut into parts: each is folded and merged in one commit, and cut the same when it comes again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tailrace.model.change import BEGAN, READ, ChangeBatch, ControlBatch, from_ipc
from tailrace.model.schema_change import DROP, SchemaChange
from tailrace.sinks.replica.renames import Rename

_ROWS = 500_000
_BYTES = 256 << 20
_INCREMENTAL = "incremental"


@dataclass
class Part:
    """Some batches of one TableSchema; or instead a schema change that the replica follows; or the table's new name.

    `epoch` is the position of the snapshot they belong to, None while streaming.
    """

    number: int
    epoch: int | None = None
    batches: list[ChangeBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    change: SchemaChange | None = None
    rename: Rename | None = None


def parts(blobs: Iterable[pa.Buffer], most_rows: int = _ROWS, most_bytes: int = _BYTES) -> Iterator[Part]:
    """The parts of one table's blobs (`ChangeBatch.to_ipc`), in order. Control records and messages have no replica."""
    part = Part(0)
    for blob in blobs:
        batch = from_ipc(blob)
        if isinstance(batch, ControlBatch) or batch.table.id.is_message:
            continue
        if batch.schema_change is not None:
            for step in _steps(batch):
                if part.batches:
                    yield part
                    part = Part(part.number + 1)
                yield replace(step, number=part.number)
                part = Part(part.number + 1)
            continue
        if not (len(batch) or batch.empty_at):
            continue
        epoch = _epoch(batch)
        if part.batches and _must_cut(part, batch, epoch, most_rows, most_bytes):
            yield part
            part = Part(part.number + 1)
        part.epoch = part.epoch if epoch is None else epoch
        part.batches.append(batch)
        part.rows += len(batch)
        part.bytes += blob.size
    if part.batches:
        yield part


def _steps(batch: ChangeBatch) -> Iterator[Part]:
    """What a replica has to do for a schema change, numbered later. New columns come with their first rows."""
    change, rename = batch.schema_change, Rename.of(batch)
    if rename is not None:
        yield Part(0, rename=rename)
    # Without its row it tells the old name of the new one, and nothing else.
    if change is not None and len(batch) and (change.kind == DROP or change.renamed or change.dropped):
        yield Part(0, change=change)


def _must_cut(part: Part, batch: ChangeBatch, epoch: int | None, most_rows: int, most_bytes: int) -> bool:
    full = part.rows >= most_rows or part.bytes >= most_bytes
    return full or batch.table != part.batches[0].table or epoch not in (None, part.epoch)


def _epoch(batch: ChangeBatch) -> int | None:
    """The position of the snapshot a batch was read in. Incremental snapshots add to a table, they replace nothing."""
    if batch.empty_at is not None:
        return batch.empty_at
    first = batch.rows.slice(0, 1).to_pylist()[0]
    if first["op"] != READ or first["snapshot"] in (None, _INCREMENTAL):
        return None
    return int(first.get(BEGAN) or first["source"]["lsn"])
