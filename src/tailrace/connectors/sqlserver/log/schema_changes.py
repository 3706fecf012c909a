"""Changes of a table's structure: a new capture instance, and the structure of tables when a pipeline begins."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailrace.connectors.sqlserver.catalog import Described, Instance
from tailrace.connectors.sqlserver.position import SOURCE_TYPE
from tailrace.model.change import COMMIT, SCHEMA, ChangeBatch
from tailrace.model.schema_change import ALTER, CREATE, DROP, SchemaChange
from tailrace.model.table import TableId, TableSchema

# What the reference engine has in place of a statement: the founding document demands null.
FAULTY_STATEMENT = "N/A"


@dataclass(frozen=True)
class Switch:
    """A new structure of a table, from the first row of an instance on. `is_new`: nothing was known of the table."""

    instance: Instance
    structure: Described
    is_new: bool


def structure_of(found: Described, kind: str, statement: str | None, position: str) -> SchemaChange:
    """The change that gives a table this structure."""
    return SchemaChange(kind, statement, position, key=found.key, columns=found.shown())


def schema_batch(
    switch: Switch, order: int, source: Mapping[str, Any], ts_us: int | None, commit: str, statement: str | None
) -> ChangeBatch:
    """The change of structure as a batch of one row; `source` is that of the change before."""
    kind = CREATE if switch.is_new else ALTER
    change = structure_of(switch.structure, kind, statement, commit)
    return _one(switch.structure.id, change, order, source, ts_us, None, commit)


def dropped_batch(table: TableId, order: int, lsn: str) -> ChangeBatch:
    """A table whose capture was disabled: no more changes come of it."""
    source = {"change_lsn": None, "commit_lsn": lsn or None, "event_serial_no": None}
    return _one(table, SchemaChange(DROP, None, lsn), order, source, None, None, lsn)


def initial_batches(
    structures: Sequence[Described], lsns: Mapping[str, str], *, ends: bool = False
) -> list[ChangeBatch]:
    """The structures of the tables there are when a pipeline begins; with `ends` no rows of a snapshot follow."""
    found = []
    for place, each in enumerate(structures, 1):
        lsn = lsns.get(each.id.database, "")
        change = structure_of(each, CREATE, None, lsn)
        source = {"change_lsn": None, "commit_lsn": lsn or None, "event_serial_no": None}
        marker = "last" if ends and place == len(structures) else "true"
        found.append(_one(each.id, change, 0, source, None, marker, lsn))
    return found


def _one(
    table: TableId,
    change: SchemaChange,
    order: int,
    source: Mapping[str, Any],
    ts_us: int | None,
    snapshot: str | None,
    commit: str,
) -> ChangeBatch:
    nothing = pa.nulls(1, pa.struct([]))
    now = time.time_ns() // 1_000_000 * 1000
    columns = {
        "op": pa.array([SCHEMA]),
        "order": pa.array([order], pa.int64()),
        "ts_us": pa.array([now if ts_us is None else ts_us], pa.int64()),
        "snapshot": pa.array([snapshot], pa.string()),
        "source": pa.array([dict(source)], SOURCE_TYPE),
        "before": nothing,
        "after": nothing,
        COMMIT: pa.array([commit]),
    }
    schema = TableSchema(table, (), (), ())
    return ChangeBatch(schema, pa.RecordBatch.from_pydict(columns), schema_change=change)
