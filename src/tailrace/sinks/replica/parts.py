"""Cuts a table's changes into parts, each folded and merged in one commit; a repeated batch is cut the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import ConfigError, TableError
from tailrace.model.change import COMMIT, PLAIN_KEY, ChangeBatch, ControlBatch, Position, from_ipc
from tailrace.model.schema_change import DROP, SchemaChange
from tailrace.sinks.replica.layout import ReplicaLayout
from tailrace.sinks.replica.marks import Extent, LogPlace, TableProgress
from tailrace.sinks.replica.renames import Rename
from tailrace.sinks.replica.settle import settled
from tailrace.sinks.replica.spool import Sized

_ROWS = 500_000  # guessed
_BYTES = 256 << 20  # guessed
_AS_THE_SOURCE = ReplicaLayout()


@dataclass
class Part:
    """Some batches of one TableSchema; or instead a schema change that the replica follows, or the table's new name.

    Or `note`: a batch without rows, see ChangeBatch. `error` says why no replica takes the rows.
    `at` is the time of a schema change (microseconds since 1970), None if its batch does not say it.
    """

    extent: Extent
    batches: list[ChangeBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    _: KW_ONLY
    change: SchemaChange | None = None
    rename: Rename | None = None
    note: ChangeBatch | None = None
    error: str | None = None
    at: int | None = None

    @property
    def request(self) -> str | None:
        """The signal that asked for these rows, where it asked for the whole table in chunks."""
        return None if self.extent.read is None else self.extent.read.request

    @property
    def oldest_us(self) -> int | None:
        """The time of the oldest change of the log; None where there is none."""
        times = [pc.min(batch.rows.column("ts_us")).as_py() for batch in self.batches if batch.read is None]
        return min((each for each in times if each is not None), default=None)

    def left(self, progress: TableProgress) -> list[ChangeBatch]:
        """The batches without the rows that the table holds already."""
        return [batch for batch, _ in self.placed(progress)]

    def placed(self, progress: TableProgress) -> list[tuple[ChangeBatch, LogPlace | None]]:
        """The same, each with the place in the table's log at which it begins; None before all of it."""
        skips_log, skips_read = progress.has_log(self.extent), progress.has_read(self.extent)
        batches, at = [], self.extent.before
        for batch in self.batches:
            if batch.read is not None:
                batches += [] if skips_read else [(batch, at)]
                continue
            skipped = len(batch) if skips_log else _written(batch, at, progress.place)
            if skipped < len(batch):
                begins = at if not skipped else _behind(at, batch.slice(0, skipped))
                batches.append((batch.slice(skipped, len(batch) - skipped), begins))
            at = _behind(at, batch)
        return batches


def parts(
    blobs: Iterable[pa.Buffer], most_rows: int = _ROWS, most_bytes: int = _BYTES, layout: ReplicaLayout = _AS_THE_SOURCE
) -> Iterator[Part]:
    """The parts of one table's blobs (`ChangeBatch.to_ipc`), in order. Control records and messages have no replica.

    Raises ConfigError for a table whose key is plain beside masked rows (`compat.faults`): rows are found by their key.
    """
    part = Part(Extent(0))
    for sized in settled(_read(blobs, layout)):
        batch = sized.batch
        if batch.schema_change is not None:
            for step in _steps(batch):
                if part.batches:
                    yield part
                    part = _next(part)
                step.extent = replace(part.extent, upto=_one_further(part.extent.upto, _commit(batch)))
                yield step
                part = _next(step)
            continue
        if batch.is_note and not batch.is_empty_table:
            if part.batches:
                yield part
                part = _next(part)
            is_begin = batch.read is not None and batch.read.begins
            extent = replace(part.extent, read=batch.read)
            error = sized.error
            yield Part(extent, [batch], error=error) if is_begin else Part(extent, note=batch, error=error)
            part = _next(part)
            continue
        if not (len(batch) or batch.is_empty_table):
            continue
        if part.batches and _must_cut(part, batch, most_rows, most_bytes):
            yield part
            part = _next(part)
        part.error = part.error or sized.error
        _add(part, batch, sized.bytes)
    if part.batches:
        yield part


def _read(blobs: Iterable[pa.Buffer], layout: ReplicaLayout) -> Iterator[Sized]:
    for blob in blobs:
        batch = from_ipc(blob)
        if isinstance(batch, ControlBatch) or batch.table.id.is_message:
            continue
        if batch.column(PLAIN_KEY) is not None:
            raise ConfigError(
                "with compat.faults a mask on a key column leaves the rows without their key",
                where=str(batch.table.id),
                remedy="remove compat.faults, or leave the column out of the mask's expression",
            )
        try:
            yield Sized(layout.applied(batch), blob.size)
        except TableError as error:
            yield Sized(batch, blob.size, str(error))


def _next(part: Part) -> Part:
    return Part(Extent(part.extent.number + 1, part.extent.upto, part.extent.upto))


def _add(part: Part, batch: ChangeBatch, size: int) -> None:
    upto, read = part.extent.upto, part.extent.read
    if batch.read is None:
        upto = _behind(upto, batch)
    elif read is None or read.snapshot is None:
        read = batch.read
    part.extent = replace(part.extent, upto=upto, read=read)
    part.batches.append(batch)
    part.rows += len(batch)
    part.bytes += size


def _steps(batch: ChangeBatch) -> Iterator[Part]:
    """What a replica has to do for a schema change, placed later. New columns come with their first rows."""
    change, rename = batch.schema_change, Rename.of(batch)
    at = batch.rows.column("ts_us")[0].as_py() if len(batch) else None
    if rename is not None:
        yield Part(Extent(0), rename=rename, at=at)
    # Without its row it only links the old name to the new one.
    if change is not None and len(batch) and (change.kind == DROP or change.renamed or change.dropped):
        yield Part(Extent(0), change=change, at=at)


def _must_cut(part: Part, batch: ChangeBatch, most_rows: int, most_bytes: int) -> bool:
    full = part.rows >= most_rows or part.bytes >= most_bytes
    if full or batch.table != part.batches[0].table or _request(batch) != _request(part.batches[0]):
        return True
    return _snapshot(batch) not in (None, _snapshot(part.batches[0]))


def _snapshot(batch: ChangeBatch) -> str | None:
    return None if batch.read is None else batch.read.snapshot


def _request(batch: ChangeBatch) -> str | None:
    return None if batch.read is None else batch.read.request


def _commit(batch: ChangeBatch) -> Position | None:
    if batch.commit is not None or not len(batch):
        return batch.commit
    position: Position = batch.rows.column(COMMIT)[0].as_py()
    return position


def _one_further(place: LogPlace | None, commit: Position | None) -> LogPlace | None:
    if commit is None:
        return place
    return LogPlace(commit, 1 + (place.rows if place is not None and place.commit == commit else 0))


def _behind(place: LogPlace | None, batch: ChangeBatch) -> LogPlace:
    """The place behind the batch's last row; the batch begins at `place`."""
    commits = batch.rows.column(COMMIT)
    last: Position = commits[-1].as_py()
    rows = _count(pc.equal(commits, commits[-1]))
    return LogPlace(last, rows + (place.rows if place is not None and place.commit == last else 0))


def _written(batch: ChangeBatch, at: LogPlace | None, written: LogPlace | None) -> int:
    """How many of the batch's first rows lie before a place in the table's log; the batch begins at another."""
    if written is None:
        return 0
    commits = batch.rows.column(COMMIT)
    border = pa.scalar(written.commit, commits.type)
    partly = written.rows - (at.rows if at is not None and at.commit == written.commit else 0)
    return _count(pc.less(commits, border)) + min(_count(pc.equal(commits, border)), max(partly, 0))


def _count(flags: pa.Array) -> int:
    return int(pc.sum(flags, min_count=0).as_py())
