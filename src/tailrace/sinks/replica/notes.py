"""Applies what a source's catalogue says of a table to its replica: columns that come and go, rows that may differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltalake import DeltaTable

from tailrace.errors import ShapeError
from tailrace.model.change import ChangeBatch
from tailrace.model.native import native_schema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.structure import Structure, differences
from tailrace.sinks.replica import delta_rs
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.health import why_not_ours
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.target import Target, arrow_schema

# The property of a Delta table that holds the description of its source which was met last.
PROPERTY = "tailrace.structure"


def apply(batch: MicroBatch, table: str, note: ChangeBatch) -> TableReport:
    """Do what a note asks for. Raises SinkError."""
    if note.structure is None:
        return TableReport(table, lacking=note.lacking)
    if note.structure.is_gone:
        # The rows go with their source, unless they are kept.
        return TableReport(table, is_gone=True) if batch.keeps_dropped else delta_rs.emptied(batch, table)
    place, structure = batch.target(table), note.structure
    return retried(place, lambda: _described(batch, place, note, structure))


def _described(batch: MicroBatch, place: Target, note: ChangeBatch, structure: Structure) -> TableReport:
    target = place.open()
    lacking = why_not_ours(target, batch.known.get(place.table), batch.query_id)
    if target is None or place.table in batch.gone:
        report = TableReport(place.table, lacking=structure.unread)
    else:
        found = differences(target.metadata().configuration.get(PROPERTY), structure)
        why = found.why or fit(batch, place, target, note, found.dropped)
        report = TableReport(place.table, lacking="; ".join(why) or None)
    if target is not None:
        _store(batch, place, target, structure)
    return delta_rs.identified(replace(report, lacking=lacking or report.lacking), target)


def fit(
    batch: MicroBatch, place: Target, target: DeltaTable, note: ChangeBatch, dropped: Sequence[str]
) -> tuple[str, ...]:
    """Give a table the columns of its source; why its rows may differ then."""
    if dropped:
        _drop(batch, place, target, dropped)
    try:
        filled, _ = delta_rs.evolve(batch, place, target, note.table, native_schema(note.table))
    except ShapeError as error:
        return (error.what,)
    return () if filled is None else (filled,)


def _drop(batch: MicroBatch, place: Target, target: DeltaTable, names: Sequence[str]) -> None:
    """Remove columns that the source no longer has."""
    shape = reshaping(arrow_schema(target), SchemaChange(ALTER, None, 0, dropped=tuple(names)))
    if shape is not None:
        rows = delta_rs.streamed(target, shape.schema, shape.names)
        delta_rs.rewrite(target, rows, delta_rs.repeated(target, batch, place.table))


def _store(batch: MicroBatch, place: Target, target: DeltaTable, structure: Structure) -> None:
    """Store a description in the table's properties, unless it is there."""
    if target.metadata().configuration.get(PROPERTY) != structure.stored:
        properties = delta_rs.repeated(target, batch, place.table)
        stored = {PROPERTY: structure.stored}
        target.alter.set_table_properties(stored, raise_if_not_exists=False, commit_properties=properties)
