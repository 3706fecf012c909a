"""Decides under which table name the changes of a partition are sent: the partition's, or that of its root."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.options import (
    PUBLICATION_AUTOCREATE_MODE,
    PUBLICATION_NAME,
    PUBLISH_VIA_PARTITION_ROOT,
    ROWS_FOR_REPLICA,
)

Name = tuple[str, str]
Lineage = tuple[Name, ...]
"""A partition that holds rows, last, and the tables it is part of, the root first; schema and name of each."""
ComesAs = Callable[[Lineage], Name | None]
"""By which name the changes of a partition come, None where none come."""

_LINEAGES = """
SELECT array_agg(n.nspname::text ORDER BY a.depth DESC), array_agg(p.relname::text ORDER BY a.depth DESC)
FROM pg_class c CROSS JOIN LATERAL pg_partition_ancestors(c.oid) WITH ORDINALITY AS a (relid, depth)
JOIN pg_class p ON p.oid = a.relid JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE c.relispartition AND c.relkind = 'r' AND c.relpersistence = 'p' GROUP BY c.oid ORDER BY 1, 2
"""
_SHOWN = 5  # guessed


def lineages(connection: psycopg.Connection[Any]) -> list[Lineage]:
    """Those of all partitions of the database that are published at all, by name."""
    rows = connection.cursor(row_factory=tuple_row).execute(_LINEAGES)
    return [tuple(zip(schemas, tables, strict=True)) for schemas, tables in rows]


def published(connection: psycopg.Connection[Any], publication: str) -> set[Name]:
    """The names under which a publication sends changes: of a partitioned table the root's or the partitions'."""
    query = "SELECT schemaname::text, tablename::text FROM pg_publication_tables WHERE pubname = %s"
    return set(connection.cursor(row_factory=tuple_row).execute(query, [publication]))


def first_of(names: Collection[Name]) -> ComesAs:
    """The first name of a lineage that is among these, None where none is."""
    return lambda line: next((name for name in line if name in names), None)


_PUBLICATION = "SELECT puballtables, pubviaroot FROM pg_publication WHERE pubname = %s"
_LISTED = """
SELECT n.nspname::text, c.relname::text FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s
"""
_SCHEMAS = """
SELECT n.nspname::text FROM pg_publication p JOIN pg_publication_namespace s ON s.pnpubid = p.oid
JOIN pg_namespace n ON n.oid = s.pnnspid WHERE p.pubname = %s
"""
_SCHEMAS_SINCE = 150_000


def left_out(connection: psycopg.Connection[Any], config: Config, captured: Collection[Name]) -> frozenset[Name]:
    """Captured tables whose changes come under the name of another captured one: partitions, or their root.

    A replica of them would stand still, so that it has none. It is asked of the catalogue, without a lock of a table.
    """
    if not (config[ROWS_FOR_REPLICA] and SnapshotMode.of(config).streams):
        return frozenset()
    names = {*captured}
    lines = [line for line in lineages(connection) if len(names.intersection(line)) > 1]
    comes_as = _comes_as(connection, config, names) if lines else first_of(())
    chosen = {line: comes_as(line) for line in lines}
    others = (part for line, name in chosen.items() if name in names for part in line)
    return frozenset(names.intersection(others) - {*chosen.values()})


def _comes_as(connection: psycopg.Connection[Any], config: Config, captured: set[Name]) -> ComesAs:
    """By the publication, or by the one that a start makes or fills."""
    name, mode = config[PUBLICATION_NAME], config[PUBLICATION_AUTOCREATE_MODE]
    cursor = connection.cursor(row_factory=tuple_row)
    row = cursor.execute(_PUBLICATION, [name]).fetchone()
    has_all, via_root = row or (mode == "all_tables", config[PUBLISH_VIA_PARTITION_ROOT])
    listed = {*cursor.execute(_LISTED, [name]).fetchall(), *(captured if mode == "filtered" else ())}
    has_schemas = connection.info.server_version >= _SCHEMAS_SINCE
    schemas = {each for (each,) in cursor.execute(_SCHEMAS, [name])} if has_schemas else set()

    def comes_as(line: Lineage) -> Name | None:
        first = next((part for part in line if has_all or part in listed or part[0] in schemas), None)
        return first if via_root or first is None else line[-1]

    return comes_as


def unheard(
    publication: str,
    lines: Iterable[Lineage],
    captured: Collection[Name],
    comes_as: ComesAs,
    level: Callable[[Name], bool | None],
    *,
    is_there: bool = True,
) -> Iterator[Finding]:
    """What is captured while its changes come by names that are not, which the filters reject without a word.

    `level` is how bad that is for a table (see Finding.ok). `is_there` tells whether the publication is made already,
    and thus what the remedy is.
    """
    by_parts: dict[Name, list[str]] = {}
    by_roots: dict[Name, list[str]] = {}
    for line in lines:
        mine, name = first_of(captured)(line), comes_as(line)
        if mine is None or name is None or name in captured:
            continue
        where = by_parts if line.index(name) > line.index(mine) else by_roots
        where.setdefault(mine, []).append(_shown(name))
    for table, parts in by_parts.items():
        what = (
            f"{publication} sends changes of {_shown(table)} by the names of its partitions ({_some(parts)}), {_LOST}"
        )
        remedy = f"{_setting(publication, True, is_there)}, or let table.include.list name the partitions"
        yield Finding("publication", level(table), what, remedy)
    for table, (root, *_) in by_roots.items():
        what = f"{publication} sends changes of the partition {_shown(table)} by the name of {root}, {_LOST}"
        remedy = f"{_setting(publication, False, is_there)}, or let table.include.list name {root}"
        yield Finding("publication", level(table), what, remedy)


_LOST = "which the filters leave out: they would be lost"


def _setting(publication: str, via_root: bool, is_there: bool) -> str:
    wanted = str(via_root).lower()
    if not is_there:
        return f"set publish.via.partition.root={wanted}"
    name = sql.Identifier(publication).as_string()
    return f"ALTER PUBLICATION {name} SET (publish_via_partition_root = {wanted})"


def _shown(name: Name) -> str:
    return ".".join(name)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
