"""Brings a part of a micro-batch into its table in one commit, whatever the table's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.schema_change import DROP
from tailrace.model.table import TableSchema
from tailrace.sinks.replica import descriptions
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.evolve import aligned, evolution, filling, fitted, numbers_as_text, takes_over
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.fold import COUNT, KEEP, Net, fold
from tailrace.sinks.replica.health import why_not_ours
from tailrace.sinks.replica.lookup import with_moved
from tailrace.sinks.replica.marks import Extent, Record, TableProgress, newest
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.renames import Stop
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.streams import streamed
from tailrace.sinks.replica.table import Mark, Rows, Table
from tailrace.sinks.replica.target import Target


def write(batch: MicroBatch, table: str, part: Part) -> TableReport:
    """Brings a part into its table in one commit, without what is there already. Raises SinkError."""
    place = batch.target(table)
    return retried(place, lambda: _written(batch, place, part))


def identified(report: TableReport, target: Table | None) -> TableReport:
    """A report with the table's version and id, where it has been written."""
    if target is None:
        return report
    return replace(report, version=target.version, table_id=target.id)


def copy(batch: MicroBatch, old: Stop, new: Stop) -> None:
    """Makes one table what another is, once, in one commit; one that is not there has no rows. Raises SinkError."""
    place = batch.target(new.table)

    def attempt() -> None:
        source, target = batch.target(old.table).open(), place.open()
        progress = batch.progress(new.table, target)
        if source is None:
            clear(batch, new.table, new.extent)
        elif not progress.has(new.extent):
            rows = streamed(source, source.schema)
            written = overwrite(batch, place, target, rows, progress.mark(new.extent), reshapes=True)
            descriptions.moved(written, source, repeated(written, batch, new.table))

    retried(place, attempt)


def clear(batch: MicroBatch, table: str, extent: Extent) -> int | None:
    """Takes all rows from a table, once; the table's version then. Raises SinkError."""
    place = batch.target(table)

    def attempt() -> int | None:
        target = place.open()
        progress = batch.progress(table, target)
        if target is None or progress.has(extent):
            return None
        target.overwrite(target.schema.empty_table(), progress.mark(extent), reshapes=False)
        return target.version

    return retried(place, attempt)


def emptied(batch: MicroBatch, table: str) -> TableReport:
    """Take all rows from a table whose source is gone. Raises SinkError."""
    place = batch.target(table)

    def attempt() -> TableReport:
        target, report = place.open(), TableReport(table, is_gone=True)
        if target is None or not target.count():
            return report
        target.overwrite(target.schema.empty_table(), repeated(target, batch, table), reshapes=False)
        return identified(report, target)

    return retried(place, attempt)


def _written(batch: MicroBatch, place: Target, part: Part) -> TableReport:
    target = place.open()
    progress = batch.progress(place.table, target)
    lacking = why_not_ours(target, batch.known.get(place.table), batch.query_id)
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
    """Bring the changes that a table does not hold into it, in one commit; they may replace its rows.

    `beside` is another table of the same rows, for values that neither the changes nor the table have. `is_copy`: the
    table does not have all rows yet. Raises what deltalake raises, and TableError.
    """
    left = part.left(progress)
    if not left:
        return TableReport(place.table)
    net, mark = fold(left), progress.mark(part.extent)
    begins = progress.begins(part.extent) if replaces is None else replaces
    lacking = None
    if target is None:
        lacking = net.lacking or missing_values(sum_of(net.rows, net.kept))
        target = created(batch, place, _puts(net), mark)
    else:
        lacking = _apply(batch, place, target, net, mark, replaces=begins, beside=beside, is_copy=is_copy)
    snapshot = None if part.extent.read is None else part.extent.read.snapshot
    report = TableReport(place.table, net.upserted, net.deleted, lacking=lacking, snapshot=snapshot)
    return identified(report, target)


def missing_values(count: int) -> str | None:
    """Why a table's rows may differ, where so many changed rows have large values that nobody has."""
    if count <= 0:  # a key that is not unique has more rows than changes
        return None
    return f"{count:,} changed rows were not in the replica, and the log does not repeat their large values"


def sum_of(rows: pa.Table, kept: Sequence[str]) -> int:
    """How many rows keep a value of the target's."""
    flags = [rows.column(KEEP + name).fill_null(False) for name in kept]
    return int(pc.sum(reduce(pc.or_, flags), min_count=0).as_py()) if flags else 0


def alter(batch: MicroBatch, place: Target, target: Table | None, progress: TableProgress, part: Part) -> int | None:
    """Follows a schema change in one commit; the table's version then, None where there was nothing to do.

    Rows of a dropped table go, unless they are kept; earlier versions of the table have them.
    """
    assert part.change is not None
    if target is None or progress.has(part.extent):
        return None
    descriptions.altered(target, part.change, repeated(target, batch, place.table))
    if part.change.kind == DROP:
        return None if batch.keeps_dropped else clear(batch, place.table, part.extent)
    shape = reshaping(target.schema, part.change)
    if shape is None:
        return None
    target.reshape(shape, progress.mark(part.extent))
    return target.version


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


def repeated(target: Table, batch: MicroBatch, table: str) -> Mark:
    """The mark of a commit that brings no changes: it repeats what the table holds of the query's."""
    record = newest(target, batch.query_id) or Record(batch.query_id, table, batch.batch_id)
    return Mark(None, -1, record.to_text(is_repeated=True))


def created(batch: MicroBatch, place: Target, rows: Rows, mark: Mark) -> Table:
    """A new table of some rows."""
    place.lake.create(place.name, rows, mark, None if batch.upkeep is None else batch.upkeep.kept_seconds)
    made = place.open()
    assert made is not None
    return made


def overwrite(
    batch: MicroBatch, place: Target, target: Table | None, rows: Rows, mark: Mark, *, reshapes: bool
) -> Table:
    """The table with these rows alone, made if it is not there."""
    if target is None:
        return created(batch, place, rows, mark)
    target.overwrite(rows, mark, reshapes=reshapes)
    return target


def _puts(net: Net) -> pa.Table:
    """The rows to be there when the target was empty. A value that the log did not repeat is null then."""
    rows = net.rows.filter(pc.greater(net.rows.column(COUNT), 0))
    return _repeated(rows, rows.column(COUNT)).select(net.table.row_type.names)


def _repeated(rows: pa.Table, times: pa.ChunkedArray) -> pa.Table:
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times.to_numpy())))


def evolve(
    batch: MicroBatch, place: Target, target: Table, table: TableSchema, fields: pa.Schema
) -> tuple[str | None, pa.Schema]:
    """Give a target the columns of the source's table; why its rows may differ then, and its schema.

    It is rewritten where a type is to hold more, or where the source gave its rows a value in a new column.
    """
    before = target.schema
    change = evolution(before, target.stored(fields), place.table)
    filled = filling(table, change.added)
    if change.widened or filled.values.column_names:
        mark = repeated(target, batch, place.table)
        wider = pa.schema([change.schema.field(name) for name in before.names])
        if filled.values.column_names or not target.widen(wider, mark):
            numbers = numbers_as_text(table, change.widened, before)
            rows = streamed(target, wider, values=filled.values, numbers=numbers)
            target.overwrite(rows, mark, reshapes=True)
    target.add_columns([field for field in change.added if field.name not in filled.values.column_names])
    return (filled.unknown if filled.unknown is not None and target.count() else None), target.schema
