"""Finds the tables that have rows which their change tables have not brought, as those that were there before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tailrace.connectors.change_tables import gap
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.ranges import in_pieces
from tailrace.connectors.change_tables.tables import Catalog, Instance
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.model.table import TableId

_AT_ONCE = 50  # guessed
_UNBROUGHT = "the table has rows that were written before its changes were captured"


def lacking_rows(
    dialect: Dialect,
    connection: Connection,
    catalog: Catalog,
    stored: gap.Known,
    waiting: Mapping[str, Sequence[int]],
    begin: LsnPosition,
    captured: Sequence[Instance],
    inside: Sequence[Instance],
) -> Iterator[tuple[TableId, str]]:
    """Captured tables with rows that the log lacks, and why: new ones, or change tables that were made again.

    `stored` and `waiting` are those of the offset, `inside` the instances with rows in the range that begins here. May
    raise the driver's errors.
    """
    for name, lsn, new in gap.replaced(stored, begin, captured):
        yield new.table, gap.disabled(name, lsn, new).what
    fresh = gap.new_tables(stored, waiting, inside)
    for each in unbrought(dialect, connection, catalog, fresh, begin):
        yield each.table, _UNBROUGHT


def unbrought(
    dialect: Dialect, connection: Connection, catalog: Catalog, instances: Sequence[Instance], begin: LsnPosition
) -> list[Instance]:
    """Those of the instances whose tables have rows that no change behind a position has brought.

    Rows that are committed and not captured yet count as such, too. May raise the driver's errors.
    """

    def ask(piece: Sequence[Instance]) -> list[Instance]:
        queries = (
            f"{dialect.one_row([str(place)])} WHERE {_has_others(dialect, catalog, each, begin)}"
            for place, each in enumerate(piece)
        )
        return [piece[int(place)] for (place,) in connection.rows(" UNION ALL ".join(queries))]

    return in_pieces(dialect, instances, _AT_ONCE, ask)


def unchanged(dialect: Dialect, catalog: Catalog, instance: Instance, lsn: str = "") -> str:
    """FROM and WHERE of the rows `t` of a table that no change behind an LSN has; all rows where it has no key."""
    table = dialect.table(instance.table)
    key = catalog.at(instance).key
    if not key:
        return f"FROM {table} t"
    behind = f"{dialect.lsn} > {dialect.literal_of(lsn)}"
    same = [behind, *(f"cdc_data.{dialect.name(column)} = t.{dialect.name(column)}" for column in key)]
    changes = f"SELECT 1 FROM {instance.changes} cdc_data WHERE {' AND '.join(same)}"
    return f"FROM {table} t WHERE NOT EXISTS ({changes})"


def _has_others(dialect: Dialect, catalog: Catalog, instance: Instance, begin: LsnPosition) -> str:
    """The condition that a table has rows which changes behind a position have not brought."""
    lsn = begin.lsn(instance.table.database)
    rows = unchanged(dialect, catalog, instance, lsn)
    if catalog.at(instance).key:
        return f"EXISTS (SELECT 1 {rows})"
    behind = f"{dialect.lsn} > {dialect.literal_of(lsn)}"
    brought = f"SELECT COALESCE(SUM({dialect.balance}), 0) FROM {instance.changes} cdc_data WHERE {behind}"
    return f"(SELECT {dialect.count} {rows}) <> ({brought})"
