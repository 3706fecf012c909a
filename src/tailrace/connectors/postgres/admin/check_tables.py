"""Checks the captured tables: privileges, keys and replica identities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tailrace.config import Config
from tailrace.config.filters import TableFilter, key_columns
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.overrides import unmatched
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.catalog.table_keys import TableKeys, table_keys
from tailrace.connectors.postgres.server.published import PublishedTable, shown, unlogged
from tailrace.connectors.postgres.snapshot.selects import grants
from tailrace.connectors.shared_keys import Indexed, shared_keys
from tailrace.model.table import TableId

# Keys: the primary key, else the first unique index that is whole, immediate and without NULLs (as the event key).
_TABLES = """
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS table, c.relkind = 'p' AS partitioned,
       c.relpersistence = 'u' AS unlogged, c.relreplident::text AS identity,
       pg_has_role(c.relowner, 'USAGE') AS owned,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS readable,
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
ORDER BY 2, 3
"""


@dataclass(frozen=True)
class CheckedTable(PublishedTable):
    """A table the filters let in. `key` is the event's key, `identity` the columns of an old row image."""

    readable: bool
    key: frozenset[str]
    identity: frozenset[str]
    indexed: Indexed


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def captured_tables(connection: psycopg.Connection[dict[str, Any]], config: Config) -> list[CheckedTable]:
    """The tables of the connection's database that the filters let in."""
    wanted = TableFilter.from_config(config)
    tables = connection.cursor(row_factory=dict_row).execute(_TABLES)
    rows = [row for row in tables if wanted.captures(_id(row["schema"], row["table"], config))]
    keys = table_keys(connection, [row["oid"] for row in rows])
    return [_captured(row, keys[row["oid"]], config) for row in rows]


def _captured(row: dict[str, Any], keys: TableKeys, config: Config) -> CheckedTable:
    columns = row["columns"] or []
    id_ = _id(row["schema"], row["table"], config)
    return CheckedTable(
        row["schema"],
        row["table"],
        row["partitioned"],
        row["unlogged"],
        row["owned"],
        row["readable"],
        frozenset(key_columns(config, id_, columns) or keys.event(config)),
        frozenset(keys.identity(row["identity"], columns)),
        Indexed(id_, columns, keys.unique),
    )


def _id(schema: str, table: str, config: Config) -> TableId:
    return TableId(config[DATABASE_DBNAME], schema, table)


def tables_findings(tables: Sequence[CheckedTable], config: Config) -> Iterator[Finding]:
    """What is to be said about the captured tables, one finding a kind of problem."""
    if not tables:
        yield Finding(
            "tables",
            False,
            f"no table of {config[DATABASE_DBNAME]} matches the filters",
            "check schema.include.list and table.include.list (whole names, schema.table), and the exclude lists",
        )
        return
    yield Finding("tables", True, f"{len(tables)} tables are captured")
    yield from unlogged(tables)
    yield from _select(tables, config)
    for what, remedy in unmatched(config, {f"{table.schema}.{table.table}" for table in tables}):
        yield Finding("snapshot", None, what, remedy)
    yield from shared_keys(config, [table.indexed for table in tables])
    yield from _identity([table for table in tables if not table.is_partitioned and not table.unlogged])


def _select(tables: Sequence[CheckedTable], config: Config) -> Iterator[Finding]:
    if not SnapshotMode.of(config).at_first:
        return
    wanted = TableFilter.from_config(config)
    unreadable = [table for table in tables if not table.readable]
    hidden = [table for table in unreadable if wanted.snapshots(_id(table.schema, table.table, config))]
    if hidden:
        ids = [_id(table.schema, table.table, config) for table in hidden]
        remedy = "; ".join(grants(config, ids))
        yield Finding("select", False, f"the snapshot may not read {shown(hidden)}", remedy)
    else:
        yield Finding("select", True, "the snapshot may read them")


def _identity(tables: Sequence[CheckedTable]) -> Iterator[Finding]:
    full = "ALTER TABLE {} REPLICA IDENTITY FULL"
    refused = [table for table in tables if not table.identity]
    uncovered = [table for table in tables if table.identity and not table.key <= table.identity]
    keyless = [table for table in tables if table.identity and not table.key]
    if refused:
        what = f"{shown(refused)}: no replica identity, so once published the server refuses updates and deletes"
        yield Finding("identity", None, what, f"add a primary key, or: {_statements(refused, full)}")
    if uncovered:
        what = f"{shown(uncovered)}: the replica identity does not cover the key, so deletes carry a made-up key"
        remedy = f"{_statements(uncovered, full)}; or name the identity's columns in message.key.columns"
        yield Finding("identity", None, what, remedy)
    if keyless:
        what = f"{shown(keyless)}: no primary key, so events and the tombstones of deletes have null keys"
        yield Finding("key", None, what, "add a primary key, or name columns in message.key.columns")
    if not refused and not uncovered and not keyless:
        yield Finding("identity", True, "every key is covered by its table's replica identity")


def _statements(tables: Sequence[CheckedTable], statement: str) -> str:
    """The statement for each table, all of them, so that it can be run as it is."""
    return "; ".join(statement.format(table.quoted) for table in tables)
