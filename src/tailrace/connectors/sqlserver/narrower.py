"""Finds capture instances that lack columns which the instance before them has: perhaps those of somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.statements import name

_LACKING = """
SELECT o.object_id, n.object_id, k.column_name
FROM {db}.cdc.change_tables o
JOIN {db}.cdc.change_tables n ON n.source_object_id = o.source_object_id AND n.object_id <> o.object_id
JOIN {db}.cdc.captured_columns k ON k.object_id = o.object_id
JOIN {db}.sys.columns c ON c.object_id = o.source_object_id AND c.name = k.column_name
WHERE NOT EXISTS (SELECT 1 FROM {db}.cdc.captured_columns m
  WHERE m.object_id = n.object_id AND m.column_name = k.column_name)
"""
REMEDY = (
    "if it is not the pipeline's, leave it out by internal.capture.instance.exclude.list; else disable the older one"
)


def narrower(connection: Connection, database: str, instances: Sequence[Instance]) -> list[str]:
    """A sentence for each table whose newest instance lacks columns that the table and its older instance have."""
    pairs = [
        (older, newer)
        for _, mine in groupby(sorted(instances, key=lambda each: each.table), key=lambda each: each.table)
        for older, newer in pairwise(mine)
    ]
    if not pairs:
        return []
    lacking: dict[tuple[int, int], list[str]] = {}
    for older, newer, column in connection.rows(_LACKING.format(db=name(database))):
        lacking.setdefault((int(older), int(newer)), []).append(str(column))
    return [
        _sentence(newer, lacking[older.number, newer.number])
        for older, newer in pairs
        if (older.number, newer.number) in lacking
    ]


def _sentence(newer: Instance, columns: Sequence[str]) -> str:
    since, lacking = f"from LSN {newer.start} on" if newer.has_begun else "once it begins", ", ".join(sorted(columns))
    read = f"{newer.table} is read from the capture instance {newer.name} {since}"
    return f"{read}, which lacks {lacking}: their values end there"
