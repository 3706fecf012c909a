"""Applies what a source's catalogue says of a table to its replica: columns that come and go, rows that may differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tailrace.errors import ShapeError
from tailrace.model.change import ChangeBatch, SnapshotRead
from tailrace.model.differences import Differences, differences
from tailrace.model.native import native_schema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.structure import Stored, Structure
from tailrace.sinks.replica import contents, descriptions, writing
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.health import why_not_ours
from tailrace.sinks.replica.marks import Record, Tally
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.table import Mark, Table
from tailrace.sinks.replica.target import Target


def apply(batch: MicroBatch, table: str, note: ChangeBatch, *, follows_rows: bool) -> TableReport:
    """Do what a note asks for; `follows_rows`: the micro-batch has changes of the table before it. Raises SinkError."""
    if note.structure is None:
        return of_reason(table, note.lacking, note.read)
    place, structure = batch.target(table), note.structure
    if structure.is_base:
        return retried(place, lambda: _begun(batch, place, structure))
    if structure.is_gone:
        return retried(place, lambda: _gone(batch, place, structure, follows_rows=follows_rows))
    return retried(place, lambda: _described(batch, place, note, structure))


def of_reason(table: str, why: str | None, read: SnapshotRead | None) -> TableReport:
    """The report of why rows may differ, or why some are missing of what was read."""
    if read is None:
        return TableReport(table, lacking=why)
    # Maybe no row came of that snapshot yet, and the first ones are not to make up for those that never come.
    return TableReport(table, left_out=why, snapshot=read.snapshot)


def _begun(batch: MicroBatch, place: Target, structure: Structure) -> TableReport:
    """Store a description that is as old as the rows of a snapshot."""
    target = place.open()
    report = TableReport(place.table, lasting=structure.unsent or "", is_there=True)
    if target is None:
        return report
    stored, described = descriptions.stored(target), Stored.of(structure)
    described.differed_us = 0 if stored is None else stored.differed_us
    descriptions.store(target, described, writing.repeated(target, batch, place.table))
    return writing.identified(report, target)


def _gone(batch: MicroBatch, place: Target, structure: Structure, *, follows_rows: bool) -> TableReport:
    """The source has no such table any more: its rows go, unless they are kept.

    Changes before in the micro-batch may be those of a new table of that name, which is taken for another one then.
    """
    target = place.open()
    stored = None if target is None else descriptions.stored(target)
    is_another = stored is not None and stored.identity not in ("", structure.identity)
    if target is None or (stored is not None and stored.is_dropped) or is_another:
        return TableReport(place.table)  # the log has told it, or it is about a table before
    left = Stored(identity=structure.identity) if follows_rows else Stored(is_dropped=True)
    descriptions.store(target, left, writing.repeated(target, batch, place.table))
    return TableReport(place.table, is_gone=True) if batch.keeps_dropped else contents.emptied(batch, place.table)


def _described(batch: MicroBatch, place: Target, note: ChangeBatch, structure: Structure) -> TableReport:
    target = place.open()
    lacking = why_not_ours(target, batch.known.get(place.table), batch.query_id)
    stored = None if target is None else descriptions.stored(target)
    if target is None and not note.table.columns:
        return TableReport(place.table)  # the description with its columns follows
    if target is None:
        target = _made(batch, place, note)
    if stored is None or stored.is_dropped:
        why = list(_met(batch, place, target, note, structure))
    else:
        why = list(_followed(batch, place, target, note, structure, stored))
    left = stored.lacking if stored is not None else ""
    described = Stored.of(structure)
    described.lacking = "; ".join([*([left] if left else []), *(each for each in why if each not in left)])
    if stored is not None:
        described.differed_us = structure.read_us if why else stored.differed_us
    descriptions.store(target, described, writing.repeated(target, batch, place.table))
    report = TableReport(place.table, lasting=structure.unsent or "", is_there=True, reminder=left or None)
    return writing.identified(replace(report, lacking=lacking or "; ".join(why) or None), target)


def _made(batch: MicroBatch, place: Target, note: ChangeBatch) -> Table:
    """Make the replica of a table that has no rows."""
    tally = None if place.mode.is_latest else Tally(place.mode.kind)
    record = Record(batch.query_id, place.table, batch.batch_id, tally=tally)
    mark = Mark(None, -1, record.to_text(is_repeated=True))
    return writing.created(batch, place, place.mode.schema(native_schema(note.table)).empty_table(), mark)


def _met(batch: MicroBatch, place: Target, target: Table, note: ChangeBatch, structure: Structure) -> Iterator[str]:
    """Give a table that is described for the first time its columns; why its rows may differ then."""
    if structure.unread is not None:
        yield structure.unread
    keeps_others = batch.keeps_dropped and descriptions.stored(target) is not None
    if not note.table.columns or structure.is_reported or keeps_others or target.count() == 0:
        return
    if structure.unmet is not None:
        yield structure.unmet
    if structure.version:
        left = {*target.schema.names}.difference(native_schema(note.table).names)
        yield from _unnamed(place, differences(None, structure), left)
        yield from fit(batch, place, target, note)


def _followed(
    batch: MicroBatch, place: Target, target: Table, note: ChangeBatch, structure: Structure, stored: Stored
) -> Iterator[str]:
    """Give a table the columns that its source has now; why its rows may differ then."""
    filled = [column.name for column in note.table.columns if column.missing is not None]
    changed = differences(stored, structure, [*filled, *descriptions.whole(stored, note.table)])
    yield from changed.why
    if structure.is_reported and structure.unread is not None and not stored.identity:
        yield structure.unread  # the log has renamed it before it was met
    has_rows, before = target.count() > 0, {*target.schema.names}
    if has_rows:
        yield from changed.values
        yield from _unfollowed(changed, before)
    if not note.table.columns:
        return  # it had other columns as these were read: the next description has them
    if has_rows and stored.version and not structure.is_reported:
        yield from _unnamed(place, changed, before.difference(stored.columns, native_schema(note.table).names))
    fitted = fit(batch, place, target, note, _followable(target, changed), drops=not structure.is_reported)
    yield from fitted if has_rows else ()


def renamed(copy: Table, replica: Table | None, structure: Structure) -> tuple[tuple[str, str], ...]:
    """Columns of a table's copy that have new names now, compared with what the replica has stored."""
    stored = None if replica is None else descriptions.stored(replica)
    return _followable(copy, differences(stored, structure))


def _followable(target: Table, changed: Differences) -> tuple[tuple[str, str], ...]:
    """Renamed columns of which no row came under the new name."""
    names = {*target.schema.names}
    return tuple((old, new) for old, new in changed.renamed if old in names and new not in names)


def _unfollowed(changed: Differences, names: set[str]) -> Iterator[str]:
    """Columns whose rows came under their new names before it was known whose names these are."""
    for old, new in changed.renamed:
        if {old, new} <= names:
            yield f"the column {old} was renamed to {new}"
    for name in names.intersection(changed.remade):
        yield f"the column {name} was added, dropped and added again"


def _unnamed(place: Target, changed: Differences, names: set[str]) -> Iterator[str]:
    """Names under which rows came and which no column has: of columns that came and went, or had them for a while.

    A history has columns of its own, and keeps those that were dropped, so that it does not tell.
    """
    if place.mode.is_latest and len(names) > changed.passing:
        yield f"a column had the name {', '.join(sorted(names))} for a while"


def fit(
    batch: MicroBatch,
    place: Target,
    target: Table,
    note: ChangeBatch,
    renamed: tuple[tuple[str, str], ...] = (),
    *,
    drops: bool = True,
) -> tuple[str, ...]:
    """Give a table the columns of its source, others than those only if it `drops` none; why its rows may differ then.

    `renamed` columns keep their values under their new names.
    """
    names, fields = {*target.schema.names}, native_schema(note.table)
    # Older versions and changes of rows have values in columns that the source has no more.
    surplus = names.difference(fields.names, (old for old, _ in renamed)) if drops and place.mode.is_latest else ()
    change = SchemaChange(ALTER, None, 0, renamed=renamed, dropped=tuple(surplus))
    shape = reshaping(target.schema, change)
    if shape is not None:
        target.reshape(shape, writing.repeated(target, batch, place.table))
    try:
        filled, _ = writing.evolve(batch, place, target, note.table, fields)
    except ShapeError as error:
        return (error.what,)
    return () if filled is None else (filled,)
