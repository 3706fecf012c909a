"""Writes a table's part of a micro-batch by what the table keeps: its newest rows, their history, or the changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tailrace.errors import ShapeError, SinkError, TableError
from tailrace.model.schema_change import DROP
from tailrace.sinks.replica import descriptions, modes
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.changes import Changes
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.health import why_not_ours
from tailrace.sinks.replica.history import History
from tailrace.sinks.replica.kept import Contents
from tailrace.sinks.replica.latest import Latest
from tailrace.sinks.replica.marks import Extent, Record, TableProgress
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.renames import Stop
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.table import Table
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.writing import Work, identified, repeated, stored_as_wanted

_KINDS: Mapping[str, Contents] = {modes.LATEST: Latest(), modes.HISTORY: History(), modes.CHANGES: Changes()}


def _contents(work: Work) -> Contents:
    """How a table is written. Raises SinkError for one that was written in another mode."""
    place, wanted = work.place, work.place.mode.kind
    written = work.progress.mode
    if written not in (None, wanted):
        raise SinkError(
            f"its tables were written with `mode: {written}`, and the pipeline has `mode: {wanted}`",
            where=f"{place.table}, {place.uri}",
            remedy=f"set `mode: {written}` again; or give the other mode a place and a checkpoint of its own",
        )
    return _KINDS[wanted]


def write(batch: MicroBatch, table: str, part: Part) -> TableReport:
    """Brings a part into its table in one commit, without what is there already. Raises SinkError."""
    place = batch.target(table)
    return retried(place, lambda: _written(batch, place, part))


def copy(batch: MicroBatch, old: Stop, new: Stop) -> None:
    """Make one table what another is, once, in one commit; one that is not there has no rows. Raises SinkError."""
    place = batch.target(new.table)

    def attempt() -> None:
        source, target = batch.target(old.table).open(), place.open()
        progress = batch.progress(new.table, target)
        if source is None:
            clear(batch, new.table, new.extent, new.at)
        elif not progress.has(new.extent):
            work = Work(batch, place, target, progress)
            written = _contents(work).move(work, source, new.extent, new.at)
            descriptions.moved(written, source, repeated(written, batch, new.table))

    retried(place, attempt)


def clear(batch: MicroBatch, table: str, extent: Extent, at: int | None) -> int | None:
    """Take all rows from a table, once, at that time of the source; the table's version then. Raises SinkError."""
    place = batch.target(table)

    def attempt() -> int | None:
        target = place.open()
        progress = batch.progress(table, target)
        if target is None or progress.has(extent):
            return None
        work = Work(batch, place, target, progress)
        _contents(work).clear(work, extent, at)
        return target.version

    return retried(place, attempt)


def emptied(batch: MicroBatch, table: str) -> TableReport:
    """Take all rows from a table whose source is gone. Raises SinkError."""
    place = batch.target(table)

    def attempt() -> TableReport:
        target, report = place.open(), TableReport(table, is_gone=True)
        if target is None or not target.count():
            return report
        work = Work(batch, place, target, batch.progress(table, target))
        _contents(work).clear(work, None, None)
        return identified(report, target)

    return retried(place, attempt)


def _written(batch: MicroBatch, place: Target, part: Part) -> TableReport:
    target = place.open()
    progress = batch.progress(place.table, target)
    lacking = why_not_ours(target, batch.known.get(place.table), batch.query_id)
    stored_as_wanted(target, batch, place)
    if part.change is not None:
        version = alter(batch, place, target, progress, part)
        report = TableReport(place.table, is_gone=part.change.kind == DROP)
        report = report if version is None else identified(report, target)
    else:
        report = bring(batch, place, target, progress, part)
    return replace(report, lacking=report.lacking if lacking is None else lacking)


def bring(
    batch: MicroBatch,
    place: Target,
    target: Table | None,
    progress: TableProgress,
    part: Part,
    *,
    replaces: bool | None = None,
    beside: Table | None = None,
    is_copy: bool = False,
) -> TableReport:
    """Bring the changes that a table does not hold into it, in one commit; see Contents. Raises what that raises."""
    work = Work(batch, place, target, progress)
    contents = _contents(work)
    # Also of changes that are written: the run that wrote them may have been killed before it could report.
    outdated = None if target is None else descriptions.outdated(target, part.oldest_us)
    if not part.left(progress):
        return TableReport(place.table, lacking=outdated)
    begins = progress.begins(part.extent) if replaces is None else replaces
    try:
        report = contents.bring(work, part, replaces=begins, beside=beside, is_copy=is_copy)
    except ShapeError as error:
        raise error if place.mode.is_latest else _unlike(place, error) from error
    snapshot = None if part.extent.read is None else part.extent.read.snapshot
    return replace(report, snapshot=snapshot, lacking=report.lacking or outdated)


def _unlike(place: Target, error: ShapeError) -> TableError:
    """The error of a type that the older rows of a table cannot have, which are to stay."""
    return TableError(
        error.what,
        where=error.where,
        remedy=f"move {place.uri} away, which has the rows until now, then run `tailrace retry`: it begins a new table",
    )


def swap(
    batch: MicroBatch, place: Target, target: Table | None, progress: TableProgress, copy: Table | None, held: Record
) -> None:
    """Bring the rows of a copy into a table, see Contents."""
    work = Work(batch, place, target, progress)
    _contents(work).swap(work, copy, held)


def alter(batch: MicroBatch, place: Target, target: Table | None, progress: TableProgress, part: Part) -> int | None:
    """Follows a schema change in one commit; the table's version then, None where there was nothing to do.

    Rows of a dropped table go, unless they are kept; earlier versions of the table have them.
    """
    assert part.change is not None
    if target is None or progress.has(part.extent):
        return None
    descriptions.altered(target, part.change, repeated(target, batch, place.table))
    if part.change.kind == DROP:
        return None if batch.keeps_dropped else clear(batch, place.table, part.extent, part.at)
    # Older versions and changes of rows have values in columns that the source has no more.
    change = part.change if place.mode.is_latest else replace(part.change, dropped=())
    shape = reshaping(target.schema, change)
    if shape is None:
        return None
    target.reshape(shape, progress.mark(part.extent))
    return target.version
