"""Finds configuration that makes a replica differ from its source by design; such tables are not compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psycopg

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.config.overrides import overrides
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.options import PUBLICATION_NAME
from tailrace.connectors.postgres.server.partition_names import first_of, lineages, published
from tailrace.connectors.postgres.snapshot.selects import Selects
from tailrace.connectors.shared_keys import key_not_unique
from tailrace.model.table import TableId

# Row filters are known to PostgreSQL 15 and newer.
_PUBLISHED = """
SELECT p.pubinsert, p.pubupdate, p.pubdelete, p.pubtruncate, {filter}
FROM pg_publication p JOIN pg_publication_tables t ON t.pubname = p.pubname
WHERE p.pubname = %s AND t.schemaname = %s AND t.tablename = %s
"""
# A snapshot reads rows of children along with their parent's; the log tells of them under their own name.
_CHILDREN = """
SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_inherits i ON i.inhparent = c.oid
WHERE n.nspname = %s AND c.relname = %s AND c.relkind = 'r'
"""
_OPERATIONS = ("inserts", "updates", "deletes", "truncates")

# Halves of partitioned tables, root or partition, that are not published by their own name.
_HALVES = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'p' OR (c.relkind = 'r' AND c.relispartition)
"""


def aside(connection: psycopg.Connection, config: Config, tables: Iterable[TableId]) -> set[TableId]:
    """The captured tables that are expected to have no replica: it holds signals, or comes by other captured names.

    A partitioned table is published as a whole or by its partitions; the other half is no table of the replica's.
    """
    name, captured = config[PUBLICATION_NAME], {(table.schema, table.table): table for table in tables}
    sent = published(connection, name)
    halves = set(connection.execute(_HALVES)) & captured.keys() - sent
    for line in lineages(connection):
        if first_of(sent)(line) not in captured:
            halves.difference_update(line)
    return {table for key, table in captured.items() if key in halves or table == table_of_signals(config)}


def obstacle(connection: psycopg.Connection, config: Config, table: CapturedTable, key: Sequence[str]) -> str | None:
    """Why a table cannot be compared with a replica of this key, None where it can."""
    catalog, name = Catalog(connection, config), str(table.schema.id)
    if not catalog.filter.snapshots(table.schema.id):
        return "the first snapshot leaves it out (snapshot.include.collection.list, or it is the table of signals)"
    if name in overrides(config):
        return "the snapshot reads a SELECT in its place (snapshot.select.statement.overrides)"
    if Selects(config).of(table, None) != (True, None):
        return "the snapshot reads a SELECT in its place (snapshot.query.mode)"
    if key and not _is_unique(catalog, table, key):
        return key_not_unique(key)
    has_heirs = connection.execute(_CHILDREN, [table.schema.id.schema, table.schema.id.table]).fetchone() is not None
    if has_heirs and not table.is_alone:
        return "other tables inherit from it, whose changes come under their own names"
    return _unpublished(connection, config, table)


def _is_unique(catalog: Catalog, table: CapturedTable, key: Sequence[str]) -> bool:
    """Whether the key holds a unique one; an identity that is not the whole row is that of an index."""
    schema = table.schema
    if tuple(key) == schema.identity and len(key) < len(schema.columns):
        return True
    own = {column for column, _ in catalog.key_types(schema.id, None)}
    return bool(own) and own <= {*key}


def _unpublished(connection: psycopg.Connection, config: Config, table: CapturedTable) -> str | None:
    name, id_ = config[PUBLICATION_NAME], table.schema.id
    query = _PUBLISHED.format(filter="t.rowfilter" if connection.info.server_version >= 150_000 else "NULL")
    row = connection.execute(query.encode(), [name, id_.schema, id_.table]).fetchone()
    if row is None:
        return f"the publication {name} does not have it (of a partitioned table it has either the root or the parts)"
    *sent, condition = row
    if condition is not None:
        return f"the publication {name} sends only rows WHERE {condition}"
    missing = [word for word, is_sent in zip(_OPERATIONS, sent, strict=True) if not is_sent]
    return f"the publication {name} does not send {', '.join(missing)}" if missing else None
