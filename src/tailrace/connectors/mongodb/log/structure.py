"""Tells what becomes of a collection that is dropped or renamed, for sinks that keep the content of collections."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.mongodb.catalog import is_temporary, table_id
from tailrace.connectors.mongodb.log.events import ChangeEvents
from tailrace.connectors.mongodb.log.pipeline import RENAME, STRUCTURAL
from tailrace.connectors.mongodb.position import SOURCE_TYPE
from tailrace.connectors.mongodb.types.layout import Flags
from tailrace.model.change import COMMIT, SCHEMA, ChangeBatch, note
from tailrace.model.schema_change import ALTER, DROP, SchemaChange
from tailrace.model.table import TableId, TableSchema

_REPLACED = (
    "it was replaced as a whole ($out, convertToCapped or a rename from another database), and the log does not have "
    "its documents"
)


def structural(events: ChangeEvents) -> Flags:
    """Which events drop or rename a collection."""
    flags: Flags = pc.is_in(events.operations, pa.array(STRUCTURAL)).to_numpy(zero_copy_only=False)
    return flags


def structure_batches(event: ChangeEvents, order: int, captures: Callable[[TableId], bool]) -> list[ChangeBatch]:
    """The batches of one event: a table that is gone, that has another name, or whose rows the log does not have.

    A view has no UUID, and no replica.
    """
    if event.collections[0][0] < 0:
        return []
    old = _table(event.namespaces[1][0])
    if event.operations[0].as_py() != RENAME:
        return [_changed(event, order, old, SchemaChange(DROP, None, _position(event)))] if captures(old) else []
    new = _table(event.targets[0])
    if captures(old) and captures(new):
        return [_changed(event, order, new, SchemaChange(ALTER, None, _position(event), previous=old))]
    if captures(old):
        return [_changed(event, order, old, SchemaChange(DROP, None, _position(event)))]
    if captures(new):
        why = _REPLACED if is_temporary(old) else f"{old} was renamed to it, whose documents were not captured"
        return [note(TableSchema(new, (), (), ()), lacking=why)]
    return []


def _table(names: tuple[str | None, str | None]) -> TableId:
    database, collection = names
    return table_id(database or "", collection or "")


def _position(event: ChangeEvents) -> str:
    return str(event.token_texts[0].as_py())


def _changed(event: ChangeEvents, order: int, table: TableId, change: SchemaChange) -> ChangeBatch:
    nothing = pa.nulls(1, pa.struct([]))
    columns = {
        "op": pa.array([SCHEMA]),
        "order": pa.array([order], pa.int64()),
        "ts_us": pa.array([time.time_ns() // 1000], pa.int64()),
        "snapshot": pa.nulls(1, pa.string()),
        "source": pa.nulls(1, SOURCE_TYPE),
        "before": nothing,
        "after": nothing,
        COMMIT: event.token_texts,
    }
    return ChangeBatch(TableSchema(table, (), (), ()), pa.RecordBatch.from_pydict(columns), schema_change=change)
