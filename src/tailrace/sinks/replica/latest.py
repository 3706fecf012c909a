"""Keeps a table equal to its source: changes are reduced to their net effect by key, which is merged in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.override import override
from tailrace.sinks.replica import descriptions
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.evolve import aligned, fitted, takes_over
from tailrace.sinks.replica.fold import COUNT, Net, fold
from tailrace.sinks.replica.kept import Contents
from tailrace.sinks.replica.lookup import with_moved
from tailrace.sinks.replica.marks import Extent, Record
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.streams import streamed
from tailrace.sinks.replica.table import Mark, Table
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.writing import Work, created, evolve, identified, missing_values, repeated, sum_of


class Latest(Contents):
    """Implements Contents."""

    @override
    def bring(
        self,
        work: Work,
        part: Part,
        *,
        replaces: bool,
        beside: Table | None,
        is_copy: bool,
    ) -> TableReport:
        batch, place, target = work.batch, work.place, work.target
        net, mark = fold(part.left(work.progress)), work.progress.mark(part.extent)
        if target is None:
            lacking = net.lacking or missing_values(sum_of(net.rows, net.kept))
            target = created(batch, place, _puts(net), mark)
        else:
            lacking = _apply(batch, place, target, net, mark, replaces=replaces, beside=beside, is_copy=is_copy)
        return identified(TableReport(place.table, net.upserted, net.deleted, lacking=lacking), target)

    @override
    def clear(self, work: Work, extent: Extent | None, at: int | None) -> None:
        target = work.there
        mark = repeated(target, work.batch, work.place.table) if extent is None else work.progress.mark(extent)
        target.overwrite(target.schema.empty_table(), mark, reshapes=False)

    @override
    def move(self, work: Work, source: Table, extent: Extent, at: int | None) -> Table:
        return work.overwrite(streamed(source, source.schema), work.progress.mark(extent), reshapes=True)

    @override
    def swap(self, work: Work, copy: Table | None, held: Record) -> None:
        mark = work.progress.swapped(held)
        if copy is not None:
            work.overwrite(streamed(copy, copy.schema), mark, reshapes=True)
        elif work.target is not None:
            work.target.overwrite(work.target.schema.empty_table(), mark, reshapes=False)


def _apply(
    batch: MicroBatch,
    place: Target,
    target: Table,
    net: Net,
    mark: Mark,
    *,
    replaces: bool,
    beside: Table | None,
    is_copy: bool,
) -> str | None:
    """Bring a net effect into a table; why its rows may differ from the source's, if they may."""
    fields = pa.schema(_fields(net))
    if net.cleared:
        descriptions.emptied(target, repeated(target, batch, place.table))
    if net.upserted:
        come, at = descriptions.types(net.table), repeated(target, batch, place.table)
        descriptions.begun(target, come, at, lambda: net.cleared or target.count() == 0)
    if replaces or takes_over(target, fields):
        if replaces:
            descriptions.cured(target, repeated(target, batch, place.table))
        target.overwrite(_puts(net), mark, reshapes=True)
        return None
    lacking, schema = evolve(batch, place, target, net.table, fields)
    net = replace(net, rows=fitted(net.rows, schema))
    if net.cleared:
        target.overwrite(aligned(_puts(net), schema), mark, reshapes=False)
        return net.lacking
    if not net.key:
        target.merge_bag(net, aligned(_puts(net), schema), mark)
        return lacking or net.lacking
    moved, lost = with_moved(target, net, beside) if net.moves else (net.rows, 0)
    absent = net.upserted - target.merge(net, aligned(moved, schema), mark)
    return lacking or net.lacking or missing_values(lost if is_copy else absent + lost)


def _fields(net: Net) -> list[pa.Field]:
    return [net.rows.schema.field(name) for name in net.table.row_type.names]


def _puts(net: Net) -> pa.Table:
    return puts(net.rows, net.table.row_type.names)


def puts(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows of a net effect to be there when the target was empty, in these columns.

    A value that the log did not repeat is null then.
    """
    some = rows.filter(pc.greater(rows.column(COUNT), 0))
    return _repeated(some, some.column(COUNT)).select(list(names))


def _repeated(rows: pa.Table, times: pa.ChunkedArray) -> pa.Table:
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times.to_numpy())))
