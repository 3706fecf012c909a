"""Creates schema-change events: for new capture instances, and for all tables when a pipeline begins."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.source_rows import source_rows
from tailrace.connectors.change_tables.tables import Instance, LastChange
from tailrace.connectors.sql_tables.tables import Described
from tailrace.model.change import COMMIT, SCHEMA, ChangeBatch
from tailrace.model.schema_change import ALTER, CREATE, DROP, SchemaChange
from tailrace.model.table import TableId, TableSchema

# What the reference engine sends in place of a statement; by default the field is null.
FAULTY_STATEMENT = "N/A"


@dataclass(frozen=True)
class ChangePlace:
    """Where a change of structure is: its order among the events, the commit it comes with or after, and the time."""

    order: int
    commit: str
    ts_us: int | None = None


@dataclass(frozen=True)
class Switch:
    """A new structure of a table, from the first row of an instance on. `is_new`: nothing was known of the table."""

    instance: Instance
    structure: Described
    is_new: bool


def structure_of(described: Described, kind: str, statement: str | None, position: str) -> SchemaChange:
    """The change that gives a table this structure."""
    return SchemaChange(kind, statement, position, key=described.key, columns=described.shown())


def schema_batch(
    dialect: Dialect, switch: Switch, place: ChangePlace, last: LastChange, statement: str | None, database: str | None
) -> ChangeBatch:
    """The change of structure as a batch of one row, behind the `last` change."""
    kind = CREATE if switch.is_new else ALTER
    change = replace(structure_of(switch.structure, kind, statement, place.commit), database=database)
    return _one(dialect, switch.structure.id, change, place, last)


def dropped_batch(dialect: Dialect, table: TableId, order: int, lsn: str) -> ChangeBatch:
    """A table whose capture was disabled: no more changes come of it."""
    return _one(dialect, table, SchemaChange(DROP, None, lsn), ChangePlace(order, lsn), LastChange(lsn))


def initial_batches(
    dialect: Dialect,
    structures: Sequence[Described],
    lsns: Mapping[str, str],
    *,
    ends: bool = False,
    last: Mapping[str, LastChange] | None = None,
) -> list[ChangeBatch]:
    """The structures of tables that a snapshot begins with; with `ends` no rows follow, and the last is marked.

    That is the last of each database; those of one are together. `lsns` are the positions of databases, `last` the
    last changes in them, if any.
    """
    batches = []
    last_changes = last or {}
    for place, each in enumerate(structures, 1):
        lsn = lsns.get(each.id.database, "")
        change = structure_of(each, CREATE, None, lsn)
        is_last = place == len(structures) or structures[place].id.database != each.id.database
        marker = "last" if ends and is_last else "true"
        batches.append(
            _one(
                dialect,
                each.id,
                change,
                ChangePlace(0, lsn),
                last_changes.get(each.id.database, LastChange(lsn)),
                marker,
            )
        )
    return batches


def _one(
    dialect: Dialect,
    table: TableId,
    change: SchemaChange,
    place: ChangePlace,
    last: LastChange,
    snapshot: str | None = None,
) -> ChangeBatch:
    nothing = pa.nulls(1, pa.struct([]))
    now = time.time_ns() // 1_000_000 * 1000
    columns = {
        "op": pa.array([SCHEMA]),
        "order": pa.array([place.order], pa.int64()),
        "ts_us": pa.array([now if place.ts_us is None else place.ts_us], pa.int64()),
        "snapshot": pa.array([snapshot], pa.string()),
        "source": source_rows(dialect.source_type, last, 1),
        "before": nothing,
        "after": nothing,
        COMMIT: pa.array([place.commit]),
    }
    schema = TableSchema(table, (), (), ())
    return ChangeBatch(schema, pa.RecordBatch.from_pydict(columns), schema_change=change)
