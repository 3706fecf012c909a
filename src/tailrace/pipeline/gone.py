"""The tables of a replica whose source has no such table any more, or does not capture it, for comparisons."""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.model.table_id import TableId
from tailrace.pipeline.checkpoint import SparkAloneError
from tailrace.pipeline.definition import Definition, ReplicaTarget
from tailrace.pipeline.replica_states import stored_states
from tailrace.sinks.replica.states import GONE
from tailrace.sinks.replica.target import Target


def gone_tables(definition: Definition, captured: Iterable[TableId]) -> list[TableId]:
    """The replica's tables that are gone, by name; none where Spark alone reads the checkpoint."""
    try:
        states = stored_states(definition.checkpoint)
    except SparkAloneError:
        return []
    captured_names, shown = {table.unique for table in captured}, definition.config().naming.shown
    gone = [name for name, state in states.items() if state.state == GONE and name not in captured_names]
    return [TableId.of_unique(name, shown) for name in sorted(gone)]


def rows_of(target: ReplicaTarget, table: TableId) -> int:
    """How many current rows a replica has; none without a table. Raises SinkError."""
    mode = target.layout.mode
    replica = Target(target.root, table.unique, target.options, target.names).open()
    if replica is None or mode.end is None:
        return 0 if replica is None else replica.count()
    return sum(batch.column(mode.end).null_count for batch in replica.scan())
