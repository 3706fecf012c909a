"""The default engine: delta-rs merges a part inside the executor's task, without a JVM."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, SchemaMismatchError

from tailrace.errors import SinkAwayError, SinkError, TableError
from tailrace.model.schema_change import DROP
from tailrace.sinks.replica import merge
from tailrace.sinks.replica.batch import MicroBatch, TableReport
from tailrace.sinks.replica.codes import row_codes
from tailrace.sinks.replica.evolve import Evolution, add_columns, aligned, evolution, takes_over
from tailrace.sinks.replica.fold import COUNT, Net, fold
from tailrace.sinks.replica.lookup import joined, matching, with_moved, without
from tailrace.sinks.replica.marks import USER_METADATA, Extent, Mark, TableProgress
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.renames import Stop
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.target import Target, arrow_schema, scan
from tailrace.sinks.replica.upkeep import Upkeep

T = TypeVar("T")

# Of rows or a schema that a table cannot take, whatever its storage does.
_OF_THE_ROWS = (pa.ArrowInvalid, SchemaMismatchError)
# How the causes of a Delta error are listed: a line each, for a terminal.
_CAUSE, _COLOURS = "↳", re.compile(r"\x1b\[[0-9;]*m")
_ATTEMPTS = 5
_PAUSE_S = 0.2


def write(batch: MicroBatch, table: str, part: Part) -> TableReport:
    """Brings a part into its table in one commit, without what is there already. Raises SinkError."""
    place = batch.target(table)
    return retried(place, lambda: _written(batch, place, part))


def copy(batch: MicroBatch, old: Stop, new: Stop) -> None:
    """Makes one table what another is, once, in one commit; none that is not there. Raises SinkError."""
    place = batch.target(new.table)

    def attempt() -> None:
        source, target = batch.target(old.table).open(), place.open()
        progress = batch.progress(new.table, target)
        if source is not None and not progress.has(new.extent):
            rows = _streamed(source, arrow_schema(source))
            _overwrite(place, target, rows, progress.mark(new.extent), "overwrite", batch.upkeep)

    retried(place, attempt)


def clear(batch: MicroBatch, table: str, extent: Extent) -> int | None:
    """Takes all rows from a table, once; the table's version then. Raises SinkError."""
    place = batch.target(table)

    def attempt() -> int | None:
        target = place.open()
        progress = batch.progress(table, target)
        if target is None or progress.has(extent):
            return None
        _overwrite(place, target, arrow_schema(target).empty_table(), progress.mark(extent), None)
        return int(target.version())

    return retried(place, attempt)


def retried(place: Target, attempt: Callable[[], T], attempts: int = _ATTEMPTS) -> T:
    """The result of the attempt. If its commit lost a race it is repeated, on the newer version. Raises SinkError."""
    try:
        return attempt()
    except CommitFailedError as error:
        if attempts == 1:
            raise failed(place, error) from error
        time.sleep(_PAUSE_S * (_ATTEMPTS + 1 - attempts))
        return retried(place, attempt, attempts - 1)
    except (DeltaError, OSError, pa.ArrowInvalid) as error:
        raise failed(place, error) from error


def _written(batch: MicroBatch, place: Target, part: Part) -> TableReport:
    target = place.open()
    progress = batch.progress(place.table, target)
    if part.change is not None:
        version = _alter(batch, place, target, progress, part)
        return TableReport(place.table, 0, 0, version)
    left = part.left(progress)
    if not left:
        return TableReport(place.table, 0, 0, None)
    net = fold(left)
    mark = progress.mark(part.extent)
    if target is None:
        _overwrite(place, None, _puts(net), mark, "overwrite", batch.upkeep)
        target = place.open()
    else:
        _apply(place, target, net, mark, replaces=progress.begins(part.extent))
    return TableReport(place.table, net.upserted, net.deleted, None if target is None else int(target.version()))


def _alter(
    batch: MicroBatch, place: Target, target: DeltaTable | None, progress: TableProgress, part: Part
) -> int | None:
    """Follows a schema change in one commit; the table's version then, None where there was nothing to do.

    Rows of a dropped table go, unless they are kept; earlier versions of the table have them.
    """
    assert part.change is not None
    if target is None or progress.has(part.extent):
        return None
    if part.change.kind == DROP:
        return None if batch.keeps_dropped else clear(batch, place.table, part.extent)
    shape = reshaping(arrow_schema(target), part.change)
    if shape is None:
        return None
    rows = _streamed(target, shape.schema, shape.names)
    _overwrite(place, target, rows, progress.mark(part.extent), "overwrite")
    return int(target.version())


def _apply(place: Target, target: DeltaTable, net: Net, mark: Mark, *, replaces: bool) -> None:
    fields = pa.schema(_fields(net))
    if replaces or takes_over(target, fields):
        _overwrite(place, target, _puts(net), mark, "overwrite")
        return
    change = evolution(arrow_schema(target), fields, place.table)
    _evolve(target, change)
    if net.cleared:
        _overwrite(place, target, aligned(_puts(net), change.schema), mark, None)
    elif net.key:
        _merge_by_key(target, net, change.schema, properties(mark))
    else:
        _merge_bag(target, net, change.schema, properties(mark))


def _fields(net: Net) -> list[pa.Field]:
    return [net.rows.schema.field(name) for name in net.table.row_type.names]


def properties(mark: Mark) -> CommitProperties:
    """The properties of a commit that carries a mark."""
    # No silent retries on top of a newer version: it may be this very part, written by a task thought dead.
    return CommitProperties(
        max_commit_retries=0,
        app_transactions=[Transaction(mark.app, mark.version)],
        custom_metadata={USER_METADATA: mark.text},
    )


def _puts(net: Net) -> pa.Table:
    """The rows to be there when the target was empty."""
    rows = net.rows.filter(pc.greater(net.rows.column(COUNT), 0))
    return _repeated(rows, rows.column(COUNT)).select(net.table.row_type.names)


def _repeated(rows: pa.Table, times: pa.ChunkedArray) -> pa.Table:
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times.to_numpy())))


def _overwrite(
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


def _evolve(target: DeltaTable, change: Evolution) -> None:
    """Adds columns, and rewrites the table where a type is to hold more (as its database did, to widen it)."""
    if change.widened:
        wider = pa.schema([change.schema.field(name) for name in arrow_schema(target).names])
        write_deltalake(target, _streamed(target, wider), mode="overwrite", schema_mode="overwrite")
    add_columns(target, change)


def _streamed(target: DeltaTable, schema: pa.Schema, names: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """The table's rows in another schema, whose columns are those of `names` (None: all of them), as a stream."""
    chosen = (batch if names is None else batch.select(list(names)) for batch in scan(target))
    rows = (
        pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema).combine_chunks() for batch in chosen
    )
    return pa.RecordBatchReader.from_batches(schema, (batch for table in rows for batch in table.to_batches()))


def _merge_by_key(target: DeltaTable, net: Net, schema: pa.Schema, properties: CommitProperties) -> None:
    rows = aligned(with_moved(target, net) if net.moves else net.rows, schema)
    if not rows.num_rows:
        return
    merger = target.merge(
        rows, merge.same_key(net.key), source_alias="s", target_alias="t", commit_properties=properties
    )
    merger.when_matched_delete(merge.DELETES)
    merger.when_matched_update(merge.updates(schema.names, net.kept))
    merger.when_not_matched_insert(merge.inserts(schema.names), merge.PUTS)
    merger.execute()


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


def failed(place: Target, error: Exception, where: str | None = None) -> SinkError:
    """What an error of Delta means; `where` it happened, by default in the table."""
    text, kind = _said(error), SinkError
    if "No space left" in str(error):
        remedy = "free space on the disk; the batch is then written again"
    elif "ermission denied" in str(error):
        remedy = f"give the user of the executors the right to write {place.uri}"
    elif "Not a directory" in str(error):
        remedy = f"remove the file that is in place of the folder {place.uri} or one above it, or set another `path`"
    elif isinstance(error, CommitFailedError):
        kind = SinkAwayError
        remedy = "let one query alone write this table; restart, and the batch is written again"
    else:
        kind = TableError if isinstance(error, _OF_THE_ROWS) else SinkAwayError
        remedy = f"check {place.uri}; the batch is written again at the next start"
    return kind(f"the replica could not be written: {text}", where=where or place.table, remedy=remedy)


def _said(error: Exception) -> str:
    """An error of Delta's, on one line: the first one, and the innermost of those that it lists as its causes."""
    first, *causes = _COLOURS.sub("", str(error)).splitlines() or [type(error).__name__]
    inner = [cause.replace(_CAUSE, "").strip() for cause in causes if _CAUSE in cause]
    return f"{first} ({inner[-1]})" if inner and inner[-1] not in first else first
