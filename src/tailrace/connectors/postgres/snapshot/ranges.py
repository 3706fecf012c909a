"""Cuts a table into ranges that are read in parallel: ranges of blocks, or of the primary key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.connectors.postgres.catalog.table_keys import table_keys
from tailrace.connectors.snapshots import PagingKey
from tailrace.model.table import TableId

_BLOCK_BYTES = 8192  # BLCKSZ, as servers are built
_FAMILY = (
    "WITH RECURSIVE family AS (SELECT %s::regclass::oid AS oid UNION "
    "SELECT i.inhrelid FROM pg_inherits i JOIN family f ON i.inhparent = f.oid)"
)
# How many rows are drawn for each border, and how many blocks they are drawn from at least: enough for even ranges.
_DRAWN, _FEWEST_BLOCKS = 30, 300


@dataclass(frozen=True)
class PrimaryKeyColumn:
    """A column of a primary key: name, type and, where it has one, collation, as SQL writes them."""

    name: str
    type: str
    collation: str | None = None

    def value(self, text: sql.Composable) -> sql.Composable:
        """A text as a value of the column."""
        cast = sql.SQL("CAST({} AS {})").format(text, sql.SQL(self.type))
        return cast if self.collation is None else sql.SQL("{} COLLATE {}").format(cast, sql.SQL(self.collation))


@dataclass(frozen=True)
class Blocks:
    """A range of a table's blocks, [first, last); None is open. A table without ctid ranges is one open range."""

    first: int | None = None
    last: int | None = None

    def condition(self) -> sql.Composable:
        """The range as a WHERE clause, empty when it is open on both sides."""
        return _where(
            sql.SQL("ctid {} {}::tid").format(sql.SQL(sign), sql.Literal(f"({block},0)"))
            for sign, block in ((">=", self.first), ("<", self.last))
            if block is not None
        )


@dataclass(frozen=True)
class PrimaryKeyRange:
    """A range of a table's primary key, (above, upto] in the key's own order; None is open."""

    key: tuple[PrimaryKeyColumn, ...]
    above: PagingKey | None = None
    upto: PagingKey | None = None

    def condition(self) -> sql.Composable:
        """The range as a WHERE clause, empty when it is open on both sides."""
        return _where(
            sql.SQL("{} {} {}").format(_row(self.key), sql.SQL(sign), literals(self.key, bound))
            for sign, bound in ((">", self.above), ("<=", self.upto))
            if bound is not None
        )


Range = Blocks | PrimaryKeyRange
WHOLE = Blocks()


def primary_key(connection: psycopg.Connection, table: TableId) -> tuple[PrimaryKeyColumn, ...]:
    """The primary key of a table, or of one with partitions; none of one with children, which may repeat keys."""
    key_row = connection.execute(
        "SELECT c.oid::int8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = %s AND (c.relkind = 'p' OR c.relkind = 'r' AND NOT c.relhassubclass)",
        [table.schema, table.table],
    ).fetchone()
    if key_row is None:
        return ()
    (oid,) = key_row
    names = list(table_keys(connection, [oid])[oid].primary)
    rows = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, -1), CASE WHEN a.attcollation = t.typcollation THEN NULL "
        "ELSE quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END "
        "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace "
        "WHERE a.attrelid = %s AND a.attname = ANY (%s) ORDER BY array_position(%s::name[], a.attname)",
        [oid, names, names],
    ).fetchall()
    return tuple(PrimaryKeyColumn(*row) for row in rows)


def table_bytes(connection: psycopg.Connection, table: TableId) -> int:
    """The size of a table with its large values, of all its partitions and of those that inherit from it."""
    row = connection.execute(
        f"{_FAMILY} SELECT sum(pg_table_size(oid))::int8 FROM family".encode(), [_regclass(connection, table)]
    ).fetchone()
    return int(row[0] or 0) if row is not None else 0


def storage(connection: psycopg.Connection, table: TableId) -> int | None:
    """A number for the files of a table, or of its partitions, as the present transaction sees them.

    It changes with each TRUNCATE or rewrite, and when a partition comes or goes.
    """
    row = connection.execute(
        f"{_FAMILY} SELECT CASE WHEN count(*) = 1 THEN min(c.relfilenode::int8) "
        "ELSE hashtextextended(string_agg(c.oid || ':' || c.relfilenode, ',' ORDER BY c.oid), 0) END "
        "FROM family JOIN pg_class c USING (oid)".encode(),
        [_regclass(connection, table)],
    ).fetchone()
    return row[0] if row is not None else None


def block_ranges(connection: psycopg.Connection, table: TableId, most_bytes: int) -> list[Range]:
    """Block ranges of about so many bytes. The last one is open, for children of the table are read along with it."""
    row = connection.execute(
        "SELECT relkind = 'r' AND NOT relhassubclass, pg_relation_size(oid) / %s FROM pg_class "
        "WHERE oid = %s::regclass",
        [_BLOCK_BYTES, _regclass(connection, table)],
    ).fetchone()
    assert row is not None
    plain, blocks = row
    step = max(most_bytes // _BLOCK_BYTES, 1)
    edges = list(range(step, blocks, step)) if plain else []
    return [Blocks(first, last) for first, last in zip([None, *edges], [*edges, None], strict=True)]


def key_ranges(
    connection: psycopg.Connection,
    table: TableId,
    key: tuple[PrimaryKeyColumn, ...],
    above: PagingKey | None,
    pieces: int,
) -> list[Range]:
    """About so many ranges of even numbers of rows, from `above` on, by a sample of the table's blocks."""
    name, wanted = sql.Identifier(table.schema, table.table), pieces * _DRAWN
    row = connection.execute(
        f"{_FAMILY} SELECT greatest(sum(pg_relation_size(oid))::int8 / %s, 1) FROM family".encode(),
        [_regclass(connection, table), _BLOCK_BYTES],
    ).fetchone()
    assert row is not None
    percent = min(100.0, 100.0 * max(wanted, _FEWEST_BLOCKS) / row[0])
    query = sql.SQL(
        "SELECT {texts} FROM (SELECT {columns}, row_number() OVER (ORDER BY {columns}) AS place, "
        "count(*) OVER () AS drawn FROM {name} TABLESAMPLE SYSTEM ({percent}) REPEATABLE (0){condition}) AS s "
        "WHERE place % greatest(drawn / {pieces}, 1) = 0 AND place < drawn ORDER BY place"
    ).format(
        texts=sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(column.name)) for column in key),
        columns=sql.SQL(", ").join(sql.Identifier(column.name) for column in key),
        name=name,
        percent=sql.Literal(percent),
        condition=PrimaryKeyRange(key, above).condition(),
        pieces=sql.Literal(pieces),
    )
    borders: list[PagingKey] = [tuple(border) for border in connection.execute(query)]
    return [PrimaryKeyRange(key, low, high) for low, high in zip([above, *borders], [*borders, None], strict=True)]


def literals(key: tuple[PrimaryKeyColumn, ...], bound: PagingKey) -> sql.Composable:
    """A key, given as texts, as a row of values."""
    values = (column.value(sql.Literal(text)) for column, text in zip(key, bound, strict=True))
    return sql.SQL("ROW({})").format(sql.SQL(", ").join(values))


def _row(key: tuple[PrimaryKeyColumn, ...]) -> sql.Composable:
    return sql.SQL("ROW({})").format(sql.SQL(", ").join(sql.Identifier(column.name) for column in key))


def _where(conditions: Iterable[sql.Composable]) -> sql.Composable:
    all_conditions = list(conditions)
    return sql.SQL(" WHERE ") + sql.SQL(" AND ").join(all_conditions) if all_conditions else sql.SQL("")


def _regclass(connection: psycopg.Connection, table: TableId) -> str:
    return sql.Identifier(table.schema, table.table).as_string(connection)
