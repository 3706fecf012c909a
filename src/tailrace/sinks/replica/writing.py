"""Makes a replica's table, gives it the source's columns and marks its commits, for all modes of a replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.table import TableSchema
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.evolve import evolution, filling, numbers_as_text
from tailrace.sinks.replica.fold import KEEP
from tailrace.sinks.replica.marks import Record, TableProgress, Tally, newest
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.stamps import now
from tailrace.sinks.replica.streams import streamed
from tailrace.sinks.replica.table import Mark, Rows, Table
from tailrace.sinks.replica.target import Target


@dataclass(frozen=True)
class Work:
    """A table that a micro-batch writes: where it lies, as it is now (None: not there yet), and what it holds."""

    batch: MicroBatch
    place: Target
    target: Table | None
    progress: TableProgress

    @property
    def tally(self) -> Tally:
        """What the mode of the table goes on from."""
        return self.progress.tally or Tally(self.place.mode.kind)

    def time(self, at: int | None) -> int:
        """The time of a change that has no row: not before those of changes before it; None for what the log lacks.

        That has the time of the last change: the log may be behind the clock, and what follows there is older.
        """
        clock = self.tally.clock
        if at is None:
            return now(self.tally) if clock is None else clock
        return at if clock is None else max(at, clock)

    @property
    def there(self) -> Table:
        """The table, which is there."""
        assert self.target is not None
        return self.target

    def overwrite(self, rows: Rows, mark: Mark, *, reshapes: bool) -> Table:
        """The table with these rows alone, made if it is not there."""
        if self.target is None:
            return created(self.batch, self.place, rows, mark)
        self.target.overwrite(rows, mark, reshapes=reshapes)
        return self.target


def identified(report: TableReport, target: Table | None) -> TableReport:
    """A report with the table's version and id, where it has been written."""
    if target is None:
        return report
    return replace(report, version=target.version, table_id=target.id)


def missing_values(count: int) -> str | None:
    """Why a table's rows may differ, where so many changed rows have large values that nobody has."""
    if count <= 0:  # a key that is not unique has more rows than changes
        return None
    return f"{count:,} changed rows were not in the replica, and the log does not repeat their large values"


def sum_of(rows: pa.Table, kept: Sequence[str]) -> int:
    """How many rows keep a value of the target's."""
    flags = [rows.column(KEEP + name).fill_null(False) for name in kept]
    return int(pc.sum(reduce(pc.or_, flags), min_count=0).as_py()) if flags else 0


def repeated(target: Table, batch: MicroBatch, table: str) -> Mark:
    """The mark of a commit that brings no changes: it repeats what the table holds of the query's."""
    record = newest(target, batch.query_id) or Record(batch.query_id, table, batch.batch_id)
    return Mark(None, -1, record.to_text(is_repeated=True))


def stored_as_wanted(target: Table | None, batch: MicroBatch, place: Target) -> None:
    """Give a table the properties that the user wants it to have."""
    wanted = place.form.properties.items() if target is not None else ()
    for name, text in wanted:
        if target is not None and target.properties.get(name) != text:
            target.set_property(name, text, repeated(target, batch, place.table))


def created(batch: MicroBatch, place: Target, rows: Rows, mark: Mark) -> Table:
    """A new table of some rows."""
    place.lake.create(place.name, rows, mark, None if batch.upkeep is None else batch.upkeep.kept_seconds)
    made = place.open()
    assert made is not None
    return made


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
