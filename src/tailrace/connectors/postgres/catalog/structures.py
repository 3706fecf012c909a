"""Describes the captured tables as the catalogue has them, so that what happens outside the log is noticed."""

from __future__ import annotations

import psycopg

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.model.structure import Structure
from tailrace.model.table import TableId

_TABLES = """
SELECT n.nspname, c.relname, c.oid::text, jsonb_object_agg(a.attname, a.attnum::text)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
  AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY n.nspname, c.relname, c.oid
"""


def structures(connection: psycopg.Connection, config: Config) -> dict[TableId, Structure]:
    """The captured tables. Another table of a name has another oid, another column of a name another number."""
    captures, database = TableFilter.from_config(config).captures, config.text("database.dbname")
    rows = ((TableId(database, *row[:2]), row[2:]) for row in connection.execute(_TABLES))
    return {table: Structure(identity=oid, columns=columns) for table, (oid, columns) in rows if captures(table)}
