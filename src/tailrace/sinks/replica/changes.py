"""Keeps a log of a table's changes: each one is a row, added once and never changed.

A row has the values after the change; of a deletion, and of a table's old row that a change of its key takes away,
those before it. What the log does not repeat is null, and the row names those columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import DELETE, TRUNCATE, UPDATE
from tailrace.model.native import with_whole
from tailrace.model.table import TableSchema
from tailrace.override import override
from tailrace.sinks.replica import descriptions, fold
from tailrace.sinks.replica.codes import row_codes
from tailrace.sinks.replica.evolve import aligned, fitted, takes_over
from tailrace.sinks.replica.kept import Contents
from tailrace.sinks.replica.marks import Extent, LogPlace, Record, Tally
from tailrace.sinks.replica.modes import STAMP, Mode
from tailrace.sinks.replica.old_values import with_old_values
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.stamps import Placed, Stamps, now, read_sequences, stamped, start
from tailrace.sinks.replica.table import Mark, Table
from tailrace.sinks.replica.writing import Work, created, evolve, identified, repeated

Flags = npt.NDArray[np.bool_]

# Of the second row of a change that is two: behind the first one, and before whatever follows.
_SECOND = ".0"
_AGAIN = "its rows are being read again"


class Changes(Contents):
    """Implements Contents."""

    @override
    def bring(self, work: Work, part: Part, *, replaces: bool, beside: Table | None, is_copy: bool) -> TableReport:
        """Rows of a snapshot that replace others follow a row that says that the table is empty."""
        placed, tally, mode = part.placed(work.progress), work.tally, work.place.mode
        base = start(work.progress, part.extent, begins=replaces)
        is_emptied = replaces and work.target is not None and work.target.count() > 0
        stamps = stamped(placed, replace(tally, reads=tally.reads + is_emptied), base)
        table, rows, unknown = _rows(placed, stamps, mode)
        if is_emptied:
            at = int(stamps.at[0]) if len(stamps.at) else now(tally)
            rows = pa.concat_tables([_emptied(mode, base, tally, at), rows], promote_options="default")
        target, lacking = _appended(work, table, rows, work.progress.mark(part.extent, stamps.tally), replaces=replaces)
        # Without a copy the rows are those of the source only when all are read, which a request tells.
        again = _AGAIN if is_emptied and part.request is not None else None
        return identified(TableReport(work.place.table, rows.num_rows, lacking=lacking or unknown or again), target)

    @override
    def clear(self, work: Work, extent: Extent | None, at: int | None) -> None:
        tally, mode = work.tally, work.place.mode
        row = _emptied(mode, work.progress.place, tally, work.time(at))
        mark = work.progress.mark(extent or Extent(0), replace(tally, reads=tally.reads + 1))
        work.there.append(aligned(row, work.there.schema), mark)

    @override
    def move(self, work: Work, source: Table, extent: Extent, at: int | None) -> Table:
        """The log of a table is under the name that it had; under the new one it is read again."""
        tally, mode = work.tally, work.place.mode
        row = _emptied(mode, work.progress.place, tally, work.time(at))
        mark = work.progress.mark(extent, replace(tally, reads=tally.reads + 1))
        if work.target is None:
            return created(work.batch, work.place, aligned(row, source.schema), mark)
        work.target.append(aligned(row, work.target.schema), mark)
        return work.target

    @override
    def swap(self, work: Work, copy: Table | None, held: Record) -> None:
        """The rows of a table that is read again are added as they come: without a copy none was read."""
        assert copy is None
        tally, mode = work.tally, work.place.mode
        row = _emptied(mode, work.progress.place, tally, work.time(None))
        mark = work.progress.swapped(held, replace(tally, reads=tally.reads + 1))
        work.there.append(aligned(row, work.there.schema), mark)


def _appended(
    work: Work, table: TableSchema, rows: pa.Table, mark: Mark, *, replaces: bool
) -> tuple[Table | None, str | None]:
    """Add rows to a table: the table, and why its rows may differ from the source's."""
    target = work.target
    if target is None:
        return created(work.batch, work.place, rows, mark), None
    if replaces:
        descriptions.cured(target, repeated(target, work.batch, work.place.table))
    if takes_over(target, rows.schema):
        target.overwrite(rows, mark, reshapes=True)
        return target, None
    lacking, schema = evolve(work.batch, work.place, target, table, rows.schema)
    target.append(aligned(fitted(rows, schema), schema), mark)
    return target, lacking


def _emptied(mode: Mode, base: LogPlace | None, tally: Tally, at: int) -> pa.Table:
    """The row that says that a table has no rows from then on."""
    held = {
        "op": pa.array([TRUNCATE]),
        "commit_time": pa.array([at]).cast(STAMP),
        "transaction": pa.nulls(1, pa.string()),
        "sequence": read_sequences(base, tally.reads, 1),
        "unchanged": pa.nulls(1, pa.list_(pa.string())),
    }
    return pa.table({name: held[what] for what, name in mode.columns.items()})


def _rows(placed: Sequence[Placed], stamps: Stamps, mode: Mode) -> tuple[TableSchema, pa.Table, str | None]:
    """The rows of changes of one TableSchema, in order, and why rows may not be those that they take away.

    Raises TableError for a change without its old row.
    """
    batches = [batch.rows for batch, _ in placed]
    table = with_whole(placed[0][0].table, [batch.column(name) for batch in batches for name in ("before", "after")])
    changes = fold.NativeChanges.of(table, fold.merge_key(table), batches)
    if changes.key:
        lacking = fold.nameless(changes)
    else:
        before, lacking = with_old_values(table, changes.op, changes.before, changes.after)
        changes = replace(changes, before=before)
    splits = _splits(changes)
    row = np.repeat(np.arange(len(changes)), 1 + splits)
    is_second = np.concatenate([[False], row[1:] == row[:-1]])[: len(row)]
    takes = changes.is_op(DELETE)[row] | (splits[row] & ~is_second)
    counts = np.where(takes, changes.takes[row], changes.puts[row])
    row, is_second, takes = row[counts], is_second[counts], takes[counts]
    images = pa.concat_arrays([changes.before, changes.after]).take(pa.array(np.where(takes, row, row + len(changes))))
    columns = dict(zip(table.row_type.names, images.flatten(), strict=True))
    held = stamps.taken(row)
    held["op"] = pc.if_else(pa.array(takes), DELETE, held["op"])
    second = pc.binary_join_element_wise(held["sequence"], _SECOND, "")
    held["sequence"] = pc.if_else(pa.array(is_second), second, held["sequence"])
    held["unchanged"] = _unchanged(changes, row, takes)
    fields = mode.schema(pa.schema(list(images.type)))
    return table, pa.table([*columns.values(), *(held[what] for what in mode.columns)], schema=fields), lacking


def _splits(changes: fold.NativeChanges) -> Flags:
    """Which changes are two rows: those that take a row away which is not the one that they put."""
    updates = changes.is_op(UPDATE)
    needed = changes.is_op(DELETE) if changes.key else changes.is_op(DELETE) | updates
    if (needed & ~changes.has_old).any():
        raise fold.no_old_row(changes.table)
    if not changes.key:
        return updates
    before, after, _ = np.split(row_codes(changes.keys, 3 * len(changes)), 3)
    splits: Flags = updates & changes.has_old_key & (before != after)
    return splits


def _unchanged(changes: fold.NativeChanges, row: npt.NDArray[np.int64], takes: Flags) -> pa.Array:
    """By row the names of the columns that the log did not repeat, null for none."""
    kind, names = pa.list_(pa.string()), list(changes.unchanged)
    if not names:
        return pa.nulls(len(row), kind)
    flags = np.stack([mask[row] & ~takes for mask in changes.unchanged.values()], axis=1)
    counts = flags.sum(axis=1)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(names).take(pa.array(np.nonzero(flags)[1])))
    return pc.if_else(pa.array(counts > 0), lists, pa.scalar(None, kind))
