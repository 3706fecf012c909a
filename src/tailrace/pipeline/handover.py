"""Hands a stopped pipeline over to a Debezium connector: its position, as that connector stores it."""

from __future__ import annotations

from typing import Any

from tailrace.connectors.debezium_offset import connect_json
from tailrace.connectors.offset import STREAM
from tailrace.errors import OffsetError
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.query_id import position_of
from tailrace.pipeline.run_state import demand_stopped
from tailrace.snapshot.progress import Progress


def debezium_offsets(definition: Definition) -> tuple[dict[str, Any], list[str]]:
    """The offsets in Kafka Connect's form, and the tables whose snapshots are not finished.

    Raises ConfigError while the pipeline runs, OffsetError where it has no position in the log yet.
    """
    demand_stopped(definition.checkpoint, "the pipeline moves its position")
    committed = position_of(definition).committed
    admin = definition.admin()
    position = None if committed is None else admin.position(committed.offset)
    if committed is None or position is None or committed.offset.get("phase") != STREAM:
        raise OffsetError(
            "the pipeline has no position in the log yet",
            where=definition.checkpoint,
            remedy="run it until its first snapshot is finished, or start Debezium with a snapshot of its own",
        )
    progress = Progress.from_json(committed.offset.get("snapshots"))
    unfinished = [request.table for request in progress.queue] + [each.table for each in progress.incomplete]
    return connect_json(admin.as_debezium(position)), unfinished
