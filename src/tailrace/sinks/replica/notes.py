"""Applies what a source's catalogue says of a table to its replica: columns that come and go, rows that may differ."""

from __future__ import annotations

from deltalake import CommitProperties, DeltaTable

from tailrace.errors import ShapeError
from tailrace.model.change import ChangeBatch
from tailrace.model.native import native_schema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.structure import Structure, differences
from tailrace.sinks.replica import delta_rs
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.target import Target, arrow_schema

# The property of a Delta table that holds the description of its source which was met last.
PROPERTY = "tailrace.structure"


def apply(batch: MicroBatch, table: str, part: Part) -> TableReport:
    """Do what a note asks for. Raises SinkError."""
    note = part.note
    assert note is not None
    if note.structure is None:
        return TableReport(table, lacking=note.lacking)
    place, structure = batch.target(table), note.structure
    if structure.is_gone:
        return _gone(batch, table)
    return retried(place, lambda: _described(batch, place, note, structure))


def _gone(batch: MicroBatch, table: str) -> TableReport:
    """The source has no such table any more: its rows go, unless they are kept."""
    version = None if batch.keeps_dropped else delta_rs.emptied(batch, table)
    return TableReport(table, version=version, is_gone=True)


def _described(batch: MicroBatch, place: Target, note: ChangeBatch, structure: Structure) -> TableReport:
    target = place.open()
    if target is None or place.table in batch.gone:
        return TableReport(place.table, version=_stored(batch, place, target, structure), lacking=structure.unread)
    known = target.metadata().configuration.get(PROPERTY)
    found = differences(known, structure)
    why = list(found.why)
    if found.dropped:
        _drop(batch, place, target, found.dropped)
    fields = native_schema(note.table)
    if not why:
        try:
            filled, _ = delta_rs.evolve(batch, place, target, note.table, fields)
            why += [] if filled is None else [filled]
        except ShapeError as error:
            why.append(error.what)
    return TableReport(place.table, version=_stored(batch, place, target, structure), lacking="; ".join(why) or None)


def _drop(batch: MicroBatch, place: Target, target: DeltaTable, names: tuple[str, ...]) -> None:
    """Remove columns that the source no longer has."""
    shape = reshaping(arrow_schema(target), SchemaChange(ALTER, None, 0, dropped=names))
    if shape is not None:
        rows = delta_rs.streamed(target, shape.schema, shape.names)
        delta_rs.rewrite(target, rows, delta_rs.repeated(target, batch, place.table))


def _stored(batch: MicroBatch, place: Target, target: DeltaTable | None, structure: Structure) -> int | None:
    """Store a description in the table's properties, unless it is there; the table's version then."""
    if target is None or target.metadata().configuration.get(PROPERTY) == structure.stored:
        return None if target is None else int(target.version())
    properties: CommitProperties = delta_rs.repeated(target, batch, place.table)
    target.alter.set_table_properties(
        {PROPERTY: structure.stored}, raise_if_not_exists=False, commit_properties=properties
    )
    return int(target.version())
