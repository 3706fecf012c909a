"""A table's changes cut into parts: each is folded and merged in one commit, and cut the same when it comes again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from tailrace.model.change import READ, ChangeBatch, ControlBatch, from_ipc

_ROWS = 500_000
_BYTES = 256 << 20
_INCREMENTAL = "incremental"


@dataclass
class Part:
    """Some batches of one TableSchema; `epoch` is the position of the snapshot they belong to, None while streaming."""

    number: int
    epoch: int | None = None
    batches: list[ChangeBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0


def parts(blobs: Iterable[pa.Buffer], most_rows: int = _ROWS, most_bytes: int = _BYTES) -> Iterator[Part]:
    """The parts of one table's blobs (`ChangeBatch.to_ipc`), in order. Control records and messages have no replica."""
    part = Part(0)
    for blob in blobs:
        batch = from_ipc(blob)
        if isinstance(batch, ControlBatch) or batch.table.id.is_message or not (len(batch) or batch.empty_at):
            continue
        if batch.schema_change is not None:
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
    return int(first["source"]["lsn"])
