"""Names in advance what keeps tables of a replica incomplete, or makes them be read again, one finding a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.catalog.structures import Structures
from tailrace.connectors.postgres.options import ROWS_FOR_REPLICA
from tailrace.connectors.postgres.server.partition_names import left_out
from tailrace.connectors.postgres.server.published import captured, shown
from tailrace.model.structure import Structure
from tailrace.model.table import TableId

_PARENTS = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
"""
_NAME = "replica"


def replica_findings(connection: psycopg.Connection[Any], config: Config) -> Iterator[Finding]:
    """What is to be said of the captured tables where rows are for a replica. Raises psycopg.Error."""
    if not (config[ROWS_FOR_REPLICA] and SnapshotMode.of(config).streams):
        return
    before = connection.row_factory
    connection.row_factory = tuple_row
    try:
        structures = Structures().read(connection, config, {})
        parents = {tuple(row) for row in connection.execute(_PARENTS)}
    finally:
        connection.row_factory = before
    yield from _unsent(structures.items())
    roots = [table for table, each in structures.items() if each.members]
    if roots:
        what = f"{shown(roots)}: a partition with rows that is attached, detached, dropped or truncated by itself "
        remedy = "delete the rows of a partition before it goes, or let the publication send partitions by their names"
        yield Finding(_NAME, None, f"{what}makes the replica of the whole table be read again", remedy)
    heirs = [table for table in structures if (table.schema, table.table) in parents]
    if heirs:
        what = f"{shown(heirs)}: the replica has no rows of the tables that inherit from it"
        yield Finding(_NAME, None, what, "read the replicas of these together with it")
    others = left_out(connection, config, [table.name for table in captured(connection, config)])
    if others:
        names = shown([".".join(name) for name in sorted(others)])
        yield Finding(_NAME, True, f"{names}: no replica, as their changes come under names of other captured tables")


def _unsent(structures: Iterable[tuple[TableId, Structure]]) -> Iterator[Finding]:
    """Tables whose changes do not all come, by the reason."""
    by_reason: dict[str, list[TableId]] = {}
    for table, structure in structures:
        if structure.unsent is not None:
            by_reason.setdefault(structure.unsent, []).append(table)
    for reason, tables in by_reason.items():
        what = f"{shown(tables)}: {reason}; the replica stays incomplete"
        yield Finding(_NAME, None, what, "change this, or leave the table out (table.exclude.list)")
