"""Keeps every version of a table's rows: from when to when each one was the source's row of its key.

A version is current while its end is null. A change ends the current version of its key and begins another one, in one
commit. What empties a table writes it again, with the ends of all versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import READ
from tailrace.override import override
from tailrace.sinks.replica import descriptions
from tailrace.sinks.replica.codes import row_codes
from tailrace.sinks.replica.digest import Hashes, row_hashes
from tailrace.sinks.replica.evolve import aligned, evolution, fitted, takes_over
from tailrace.sinks.replica.kept import Contents
from tailrace.sinks.replica.lookup import joined, places_of, with_moved
from tailrace.sinks.replica.marks import Extent, LogPlace, Record, Tally, newest
from tailrace.sinks.replica.modes import STAMP, Mode
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.stamps import now, read_sequences, stamped, start
from tailrace.sinks.replica.table import Mark, Table
from tailrace.sinks.replica.versions import Versions, versions
from tailrace.sinks.replica.writing import Work, created, evolve, identified, missing_values, repeated, sum_of

_NONE: Hashes = np.zeros(0, np.uint64)


class History(Contents):
    """Implements Contents."""

    @override
    def bring(self, work: Work, part: Part, *, replaces: bool, beside: Table | None, is_copy: bool) -> TableReport:
        placed, before = part.placed(work.progress), work.tally
        stamps = stamped(placed, before, start(work.progress, part.extent, begins=replaces))
        begun = None if not replaces else int(stamps.at[0]) if len(stamps.at) else now(before)
        changed = versions(placed, stamps, work.place.mode, begun)
        tally = stamps.tally if begun is None else _not_before(stamps.tally, begun)
        target, lacking = _written(work, changed, work.progress.mark(part.extent, tally), replaces=replaces)
        report = TableReport(work.place.table, changed.net.upserted, changed.deleted, lacking=lacking)
        return identified(report, target)

    @override
    def clear(self, work: Work, extent: Extent | None, at: int | None) -> None:
        ends_at = work.time(at)
        mark = work.progress.mark(extent or Extent(0), _not_before(work.tally, ends_at))
        rows = _ended(work.there, work.there.schema, work.place.mode, ends_at)
        work.overwrite(_stream(work.there.schema, rows), mark, reshapes=False)

    @override
    def move(self, work: Work, source: Table, extent: Extent, at: int | None) -> Table:
        """A name has the history of all that had it: the versions of the table before end."""
        mode, base = work.place.mode, work.progress.place
        record = newest(source)
        former = None if record is None or record.tally is None else record.tally.clock
        moment = max(work.time(at), former or 0)
        tally = replace(_not_before(work.tally, moment), reads=work.tally.reads + source.count())
        rows = _current(source, mode)
        begun = _begun(rows, mode, moment, base, work.tally.reads)
        fields = pa.schema([each for each in source.schema if each.name not in mode.columns.values()])
        return _replaced(work, fields, moment, begun, _NONE, work.progress.mark(extent, tally))

    @override
    def swap(self, work: Work, copy: Table | None, held: Record) -> None:
        """Versions whose row is the copy's as well stay."""
        mode, moment = work.place.mode, work.time(None)
        tally = _not_before(work.tally, moment)
        if copy is None:
            rows = _ended(work.there, work.there.schema, mode, moment)
            mark = work.progress.swapped(held, tally)
            work.overwrite(_stream(work.there.schema, rows), mark, reshapes=False)
            return
        tally = replace(tally, reads=tally.reads + copy.count())
        schema = copy.schema if work.target is None else _joint(work.target, copy.schema, work.place.table)
        current = iter(()) if work.target is None else _current(work.target, mode)
        kept = np.intersect1d(_hashes(current, schema), _hashes(_scanned(copy), schema))
        places = [place for place in (work.progress.place, held.place) if place is not None]
        new = (_without(rows, kept, schema) for rows in _scanned(copy))
        begun = _begun(new, mode, moment, max(places, default=None), work.tally.reads)
        _replaced(work, copy.schema, moment, begun, kept, work.progress.swapped(held, tally), compared=schema)


def _written(work: Work, changed: Versions, mark: Mark, *, replaces: bool) -> tuple[Table, str | None]:
    """Bring versions into a table: the table, and why its rows may differ from the source's."""
    mode, net, target = work.place.mode, changed.net, work.target
    names = [*net.table.row_type.names, *mode.columns.values()]
    if target is None:
        made = created(work.batch, work.place, net.rows.select(names), mark)
        return made, net.lacking or missing_values(sum_of(net.rows, net.kept))
    if net.cleared:
        descriptions.emptied(target, repeated(target, work.batch, work.place.table))
    if net.upserted:
        come, at = descriptions.types(net.table), repeated(target, work.batch, work.place.table)
        descriptions.begun(target, come, at, lambda: net.cleared or not any(map(len, _current(target, mode))))
    if replaces:
        descriptions.cured(target, repeated(target, work.batch, work.place.table))
    fields = pa.schema([net.rows.schema.field(name) for name in names])
    if takes_over(target, fields):
        target.overwrite(net.rows.select(names), mark, reshapes=True)
        return target, missing_values(sum_of(net.rows, net.kept))
    lacking, schema = evolve(work.batch, work.place, target, net.table, fields)
    rows, lost = fitted(net.rows, schema), 0
    if net.kept:
        rows, lost = with_moved(target, replace(net, rows=rows), end=mode.end)
        lost += sum_of(rows, net.kept)
    begun = aligned(rows.select(names), schema)
    ends = fitted(changed.ends, schema)
    ends = aligned(ends, pa.schema([schema.field(name) for name in ends.column_names]))
    if changed.cleared is not None:
        ended = _ended(target, schema, mode, changed.cleared, ends)
        target.overwrite(_stream(schema, ended, [begun]), mark, reshapes=False)
    elif ends.num_rows or begun.num_rows:
        target.succeed(net.key, str(mode.end), ends, begun, mark)
    return target, lacking or net.lacking or missing_values(lost)


def _replaced(
    work: Work,
    fields: pa.Schema,
    at: int,
    begun: Iterable[pa.Table],
    kept: Hashes,
    mark: Mark,
    compared: pa.Schema | None = None,
) -> Table:
    """A table whose current versions end, but for those of `kept` hashes, and which has others from then on."""
    wanted = work.place.mode.schema(fields)
    if work.target is None or takes_over(work.target, wanted):
        return work.overwrite(_stream(wanted, begun), mark, reshapes=True)
    schema = evolution(work.target.schema, wanted, work.place.table).schema
    ended = _ended(work.target, schema, work.place.mode, at, kept=kept, compared=compared)
    return work.overwrite(_stream(schema, ended, begun), mark, reshapes=True)


def _joint(target: Table, fields: pa.Schema, table: str) -> pa.Schema:
    """The columns of a copy, in types that hold both sides' values. Raises ShapeError."""
    schema = evolution(target.schema, fields, table).schema
    return pa.schema([schema.field(name) for name in fields.names])


def _ended(
    target: Table,
    schema: pa.Schema,
    mode: Mode,
    at: int,
    ends: pa.Table | None = None,
    kept: Hashes = _NONE,
    compared: pa.Schema | None = None,
) -> Iterator[pa.Table]:
    """All versions of a table; current ones end at that time, or as `ends` says of their keys, but for `kept` ones."""
    end = str(mode.end)
    scanned = _scanned(target)
    place = schema.get_field_index(end)

    def rows() -> Iterator[pa.Table]:
        for of_target in scanned:
            versions_of = aligned(of_target, schema)
            times = versions_of.column(end).combine_chunks()
            stop = times.is_null()
            if compared is not None and len(kept):
                stop = pc.and_not(stop, pa.array(np.isin(_hashes([of_target], compared), kept)))
            until = pa.repeat(pa.scalar(at, pa.int64()).cast(STAMP), len(times))
            if ends is not None and ends.num_rows:
                until = pc.coalesce(_told(versions_of, ends, end), until)
            yield versions_of.set_column(place, schema.field(place), pc.if_else(stop, until.cast(times.type), times))

    return rows()


def _told(rows: pa.Table, ends: pa.Table, end: str) -> pa.Array:
    """By row the end that is told of its key, null for none."""
    key = [name for name in ends.column_names if name != end]
    codes = row_codes(joined([ends, rows], key), ends.num_rows + rows.num_rows)
    return ends.column(end).combine_chunks().take(places_of(codes, ends.num_rows)).cast(STAMP)


def _begun(some: Iterable[pa.Table], mode: Mode, at: int, base: LogPlace | None, reads: int) -> Iterator[pa.Table]:
    """Rows that were read, as versions that begin at that time."""
    for rows in some:
        count = rows.num_rows
        moment = pa.repeat(pa.scalar(at, pa.int64()).cast(STAMP), count)
        held = {
            "valid_from": moment,
            "valid_to": pa.nulls(count, STAMP),
            "op": pa.repeat(READ, count),
            "commit_time": moment,
            "transaction": pa.nulls(count, pa.string()),
            "sequence": read_sequences(base, reads, count),
        }
        for what, name in mode.columns.items():
            place = rows.column_names.index(name) if name in rows.column_names else None
            rows = rows.append_column(name, held[what]) if place is None else rows.set_column(place, name, held[what])
        reads += count
        yield rows


def _scanned(target: Table) -> Iterator[pa.Table]:
    """The rows of a table, some at a time; reading begins before whatever takes them."""
    schema, source = target.schema, target.scan()
    return (pa.Table.from_batches([batch]).cast(schema) for batch in source if batch.num_rows)


def _current(target: Table, mode: Mode) -> Iterator[pa.Table]:
    """The current versions of a table."""
    return (rows.filter(rows.column(mode.end).is_null()) for rows in _scanned(target))


def _hashes(some: Iterable[pa.Table], schema: pa.Schema) -> Hashes:
    parts = (aligned(rows, schema).select(schema.names) for rows in some)
    return np.concatenate([_NONE, *(row_hashes(each.columns, each.num_rows, signed=True) for each in parts)])


def _without(rows: pa.Table, gone: Hashes, schema: pa.Schema) -> pa.Table:
    return rows.filter(pa.array(~np.isin(_hashes([rows], schema), gone)))


def _not_before(tally: Tally, at: int) -> Tally:
    """A tally whose clock is no earlier than some time."""
    return replace(tally, clock=at if tally.clock is None else max(tally.clock, at))


def _stream(schema: pa.Schema, *parts: Iterable[pa.Table]) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            for rows in part:
                yield from aligned(rows, schema).select(schema.names).combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
