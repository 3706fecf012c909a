"""Cuts a table with partitions or children into splits that are read in parallel.

Rows are read from the members of the family themselves (ONLY, by the names of the table's columns, whose order may be
another there). That takes rights on each, and no row security: both are the table's own when it is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.connectors.postgres.snapshot.ranges import Blocks
from tailrace.model.table import TableId

_MEMBERS = """
WITH RECURSIVE family AS (
  SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = %s AND c.relname = %s AND (c.relkind = 'p' OR c.relhassubclass)
  UNION SELECT i.inhrelid FROM pg_inherits i JOIN family f ON i.inhparent = f.oid WHERE NOT i.inhdetachpending
)
SELECT n.nspname, c.relname, c.relkind = 'f', CASE c.relkind WHEN 'r' THEN pg_relation_size(c.oid) ELSE 0 END / %s,
  has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE') AND NOT row_security_active(c.oid)
FROM family f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relpersistence <> 't' ORDER BY 1, 2
"""
_BLOCK_BYTES = 8192  # BLCKSZ, as servers are built


@dataclass(frozen=True, slots=True)
class PartitionMember:
    """One of a family of tables that may have rows; nobody knows how many blocks a foreign table has (0)."""

    schema: str
    name: str
    is_foreign: bool
    blocks: int


Part = tuple[PartitionMember, Blocks]


def side_by_side(
    connection: psycopg.Connection, table: TableId, columns: Sequence[str], pieces: int
) -> list[sql.Composed]:
    """SELECTs of these columns, at most `pieces`, that read all rows of a table between them.

    None where that is not worth it, where the table is alone, and where its family is not to be read directly.
    """
    if pieces < 2:
        return []
    rows = connection.execute(_MEMBERS, [table.schema, table.table, _BLOCK_BYTES]).fetchall()
    if not all(is_open for *_, is_open in rows):
        return []
    members = [PartitionMember(*row[:4]) for row in rows]
    return [_select(columns, parts) for parts in shared_out(members, pieces)]


def shared_out(members: Iterable[PartitionMember], pieces: int) -> list[list[Part]]:
    """The blocks of all members, one after another, in at most so many pieces of even size."""
    all_members = list(members)
    step = max(-(-sum(member.blocks for member in all_members) // pieces), 1)
    shared: list[list[Part]] = [[(member, Blocks()) for member in all_members if member.is_foreign]]
    room = step
    for member in all_members:
        first = 0
        while first < member.blocks:
            if not room:
                shared.append([])
                room = step
            last = first + min(room, member.blocks - first)
            # The end of each is open, as it may have grown since; what is new is not visible.
            shared[-1].append((member, Blocks(first or None, last if last < member.blocks else None)))
            room -= last - first
            first = last
    return [parts for parts in shared if parts]


def _select(columns: Sequence[str], parts: Iterable[Part]) -> sql.Composed:
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {} FROM ONLY {}{}").format(
            listed, sql.Identifier(member.schema, member.name), blocks.condition()
        )
        for member, blocks in parts
    )
