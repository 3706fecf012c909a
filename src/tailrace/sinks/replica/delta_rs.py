"""The default engine: delta-rs merges a part inside the executor's task, without a JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tailrace.model.schema_change import DROP
from tailrace.model.table import TableSchema
from tailrace.sinks.replica import descriptions, merge
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.codes import row_codes
from tailrace.sinks.replica.evolve import (
    add_columns,
    aligned,
    cast,
    evolution,
    filling,
    fitted,
    numbers_as_text,
    takes_over,
    trimmed,
)
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.fold import COUNT, KEEP, Net, fold
from tailrace.sinks.replica.health import why_not_ours
from tailrace.sinks.replica.lookup import joined, matching, with_moved, without
from tailrace.sinks.replica.marks import USER_METADATA, Extent, Mark, Record, TableProgress, newest
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.renames import Stop
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.target import Target, arrow_schema, scan
from tailrace.sinks.replica.upkeep import Upkeep


def write(batch: MicroBatch, table: str, part: Part) -> TableReport:
    """Brings a part into its table in one commit, without what is there already. Raises SinkError."""
    place = batch.target(table)
    return retried(place, lambda: _written(batch, place, part))


def identified(report: TableReport, target: DeltaTable | None) -> TableReport:
    """A report with the table's version and id, where it has been written."""
    if target is None:
        return report
    return replace(report, version=int(target.version()), delta_id=str(target.metadata().id))


def copy(batch: MicroBatch, old: Stop, new: Stop) -> None:
    """Makes one table what another is, once, in one commit; one that is not there has no rows. Raises SinkError."""
    place = batch.target(new.table)

    def attempt() -> None:
        source, target = batch.target(old.table).open(), place.open()
        progress = batch.progress(new.table, target)
        if source is None:
            clear(batch, new.table, new.extent)
        elif not progress.has(new.extent):
            rows = streamed(source, arrow_schema(source))
            overwrite(place, target, rows, progress.mark(new.extent), "overwrite", batch.upkeep)
            written = place.open()
            assert written is not None
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
        overwrite(place, target, arrow_schema(target).empty_table(), progress.mark(extent), None)
        return int(target.version())

    return retried(place, attempt)


def emptied(batch: MicroBatch, table: str) -> TableReport:
    """Take all rows from a table whose source is gone. Raises SinkError."""
    place = batch.target(table)

    def attempt() -> TableReport:
        target, report = place.open(), TableReport(table, is_gone=True)
        if target is None or not target.count():
            return report
        rewrite(target, arrow_schema(target).empty_table(), repeated(target, batch, table))
        return identified(report, target)

    return retried(place, attempt)


def rewrite(target: DeltaTable, rows: pa.Table | pa.RecordBatchReader, properties: CommitProperties) -> None:
    """Replace rows and columns of a table in a commit that brings no changes of the log."""
    write_deltalake(target, rows, mode="overwrite", schema_mode="overwrite", commit_properties=properties)


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
    target: DeltaTable | None,
    progress: TableProgress,
    part: Part,
    *,
    replaces: bool | None = None,
    beside: DeltaTable | None = None,
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
        lacking = missing_values(sum_of(net.rows, net.kept))
        overwrite(place, None, _puts(net), mark, "overwrite", batch.upkeep)
        target = place.open()
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


def alter(
    batch: MicroBatch, place: Target, target: DeltaTable | None, progress: TableProgress, part: Part
) -> int | None:
    """Follows a schema change in one commit; the table's version then, None where there was nothing to do.

    Rows of a dropped table go, unless they are kept; earlier versions of the table have them.
    """
    assert part.change is not None
    if target is None or progress.has(part.extent):
        return None
    descriptions.altered(target, part.change, repeated(target, batch, place.table))
    if part.change.kind == DROP:
        return None if batch.keeps_dropped else clear(batch, place.table, part.extent)
    shape = reshaping(arrow_schema(target), part.change)
    if shape is None:
        return None
    rows = streamed(target, shape.schema, shape.names)
    overwrite(place, target, rows, progress.mark(part.extent), "overwrite")
    return int(target.version())


def _apply(
    batch: MicroBatch,
    place: Target,
    target: DeltaTable,
    net: Net,
    mark: Mark,
    *,
    replaces: bool,
    beside: DeltaTable | None,
    is_copy: bool,
) -> str | None:
    """Bring a net effect into a table; why its rows may differ from the source's, if they may."""
    fields = pa.schema(_fields(net))
    if net.cleared:
        descriptions.emptied(target, repeated(target, batch, place.table))
    if replaces or takes_over(target, fields):
        if replaces:
            descriptions.cured(target, repeated(target, batch, place.table))
        overwrite(place, target, _puts(net), mark, "overwrite")
        return None
    lacking, schema = evolve(batch, place, target, net.table, fields)
    net = replace(net, rows=fitted(net.rows, schema))
    if net.cleared:
        overwrite(place, target, aligned(_puts(net), schema), mark, None)
        return None
    if not net.key:
        _merge_bag(target, net, schema, properties(mark))
        return lacking
    absent, lost = _merge_by_key(target, net, schema, properties(mark), beside)
    return lacking or missing_values(lost if is_copy else absent + lost)


def _fields(net: Net) -> list[pa.Field]:
    return [net.rows.schema.field(name) for name in net.table.row_type.names]


def repeated(target: DeltaTable, batch: MicroBatch, table: str) -> CommitProperties:
    """The properties of a commit that brings no changes: they repeat what the table holds of the query's."""
    return CommitProperties(custom_metadata={USER_METADATA: repeated_text(target, batch, table)})


def repeated_text(target: DeltaTable, batch: MicroBatch, table: str) -> str:
    """The text of such a commit."""
    record = newest(target, batch.query_id) or Record(batch.query_id, table, batch.batch_id)
    return record.to_text(is_repeated=True)


def properties(mark: Mark) -> CommitProperties:
    """The properties of a commit that carries a mark."""
    # No silent retries on top of a newer version: it may be this very part, written by a task thought dead.
    return CommitProperties(
        max_commit_retries=0,
        app_transactions=[Transaction(mark.app, mark.version)],
        custom_metadata={USER_METADATA: mark.text},
    )


def _puts(net: Net) -> pa.Table:
    """The rows to be there when the target was empty. A value that the log did not repeat is null then."""
    rows = net.rows.filter(pc.greater(net.rows.column(COUNT), 0))
    return _repeated(rows, rows.column(COUNT)).select(net.table.row_type.names)


def _repeated(rows: pa.Table, times: pa.ChunkedArray) -> pa.Table:
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times.to_numpy())))


def overwrite(
    place: Target,
    target: DeltaTable | None,
    rows: pa.Table | pa.RecordBatchReader,
    mark: Mark,
    schema_mode: Literal["overwrite"] | None,
    upkeep: Upkeep | None = None,
) -> None:
    write_deltalake(
        place.uri if target is None else target,
        rows,
        mode="overwrite",
        schema_mode=schema_mode,
        storage_options=dict(place.storage_options) if target is None else None,
        configuration=None if upkeep is None or target is not None else upkeep.properties,
        commit_properties=properties(mark),
    )


def evolve(
    batch: MicroBatch, place: Target, target: DeltaTable, table: TableSchema, fields: pa.Schema
) -> tuple[str | None, pa.Schema]:
    """Give a target the columns of the source's table; why its rows may differ then, and its schema.

    It is rewritten where a type is to hold more, or where the source gave its rows a value in a new column.
    """
    change = evolution(arrow_schema(target), fields, place.table)
    filled = filling(table, change.added)
    if change.widened or filled.values.column_names:
        wider = pa.schema([change.schema.field(name) for name in arrow_schema(target).names])
        numbers = numbers_as_text(table, change.widened, arrow_schema(target))
        rows = streamed(target, wider, values=filled.values, numbers=numbers)
        rewrite(target, rows, repeated(target, batch, place.table))
    add_columns(target, [field for field in change.added if field.name not in filled.values.column_names])
    return (filled.unknown if target.count() else None), arrow_schema(target)


def streamed(
    target: DeltaTable,
    schema: pa.Schema,
    names: Sequence[str] | None = None,
    values: pa.Table | None = None,
    numbers: Collection[str] = (),
) -> pa.RecordBatchReader:
    """The table's rows in another schema, as a stream: their columns are those of `names` (None: all of them).

    After them come the columns of `values`, a row that all rows have. `numbers` are decimals that become text.
    """
    whole = schema if values is None else pa.schema([*schema, *values.schema])
    source = scan(target)  # not in the loop, which runs inside deltalake

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in source:
            table = pa.Table.from_batches([batch if names is None else batch.select(list(names))])
            for name in numbers:
                table = table.set_column(table.schema.get_field_index(name), name, trimmed(table.column(name)))
            columns = [cast(table.column(place), field.type) for place, field in enumerate(schema)]
            table = pa.table(columns, schema=schema)
            for field in () if values is None else values.schema:
                value = values.column(field.name)[0] if values is not None else None
                table = table.append_column(field, pa.repeat(value, table.num_rows))
            yield from table.combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(whole, rows())


def _merge_by_key(
    target: DeltaTable, net: Net, schema: pa.Schema, properties: CommitProperties, beside: DeltaTable | None
) -> tuple[int, int]:
    """MERGE by key. A row that keeps values is changed, and not inserted if the target lacks it.

    Returns how many rows the target lacks, and how many have a new key and values that nobody has.
    """
    moved, lost = with_moved(target, net, beside) if net.moves else (net.rows, 0)
    rows = aligned(moved, schema)
    if not rows.num_rows:
        return 0, 0
    merger = target.merge(
        rows, merge.same_key(net.key), source_alias="s", target_alias="t", commit_properties=properties
    )
    merger.when_matched_delete(merge.DELETES)
    merger.when_matched_update(merge.updates(schema.names, net.kept))
    merger.when_not_matched_insert(merge.inserts(schema.names), merge.inserted(net.kept))
    metrics = merger.execute()
    written = int(metrics["num_target_rows_inserted"]) + int(metrics["num_target_rows_updated"])
    return net.upserted - written, lost


def _merge_bag(target: DeltaTable, net: Net, schema: pa.Schema, properties: CommitProperties) -> None:
    """Without a key: all rows that may equal one to be taken away are deleted, and those that remain are put back."""
    added = aligned(_puts(net), schema)
    gone = net.rows.filter(pc.less(net.rows.column(COUNT), 0))
    if not gone.num_rows:
        if added.num_rows:
            write_deltalake(target, added, mode="append", commit_properties=properties)
        return
    names = [field.name for field in _fields(net) if _is_plain(field.type)]
    touched = matching(target, gone, names)
    remaining = aligned(without(touched, gone, net.table.row_type.names), schema)
    marks = pa.concat_tables([remaining, added])
    marks = marks.append_column(COUNT, pa.array(np.ones(marks.num_rows, np.int64)))
    first = np.unique(row_codes(joined([gone], names), gone.num_rows), return_index=True)[1]
    deletes = aligned(gone.select([*names, COUNT]).take(pa.array(first)), schema)
    alike = [f"(t.{merge.quoted(name)} IS NOT DISTINCT FROM s.{merge.quoted(name)})" for name in names]
    merger = target.merge(
        pa.concat_tables([deletes, marks]),
        " AND ".join([f"({merge.DELETES})", *alike]),
        source_alias="s",
        target_alias="t",
        commit_properties=properties,
    )
    merger.when_matched_delete().when_not_matched_insert(merge.inserts(schema.names), merge.PUTS).execute()


def _is_plain(kind: pa.DataType) -> bool:
    """Whether SQL compares a type as `row_codes` does: floats (NaN, -0.0) and nested types it does not."""
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind))
