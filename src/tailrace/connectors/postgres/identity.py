"""Replica identities, set at each start as `replica.identity.autoset.values` says."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.config.kinds import compile_pattern
from tailrace.connectors.postgres.connect import first_line
from tailrace.errors import ConfigError, SourceError
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

_CURRENT = """
SELECT CASE c.relreplident WHEN 'd' THEN 'DEFAULT' WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE 'INDEX ' ||
  (SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
   WHERE i.indrelid = c.oid AND i.indisreplident)
END FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""


def autoset(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> None:
    """Alter the tables whose identity is another one than the property names.

    Raises ConfigError when two entries match one table, SourceError when the server refuses.
    """
    entries = [entry.partition(":") for entry in config.names("replica.identity.autoset.values")]
    wishes = [(compile_pattern(pattern.strip()), " ".join(wish.split())) for pattern, _, wish in entries]
    for table in tables if wishes else ():
        matching = [wish for pattern, wish in wishes if pattern.fullmatch(str(table))]
        if len(matching) > 1:
            raise ConfigError(
                f"More than one regular expression matches table {table}", where="replica.identity.autoset.values"
            )
        if matching:
            _set(connection, table, matching[0])


def _set(connection: psycopg.Connection, table: TableId, wish: str) -> None:
    kind, _, index = wish.partition(" ")
    row = connection.execute(_CURRENT, [table.schema, table.table]).fetchone()
    wanted = f"INDEX {index}" if index else kind.upper()
    if row is None or row[0] == wanted:
        return
    how = sql.SQL("USING INDEX {}").format(sql.Identifier(index)) if index else sql.SQL(kind.upper())
    try:
        connection.execute(
            sql.SQL("ALTER TABLE {} REPLICA IDENTITY {}").format(sql.Identifier(table.schema, table.table), how)
        )
    except psycopg.Error as error:
        raise SourceError(
            f"cannot set the replica identity: {first_line(error)}",
            where=str(table),
            remedy=f"let the table's owner run ALTER TABLE {table} REPLICA IDENTITY {wish}, "
            "or take the table out of replica.identity.autoset.values",
        ) from error
    log.info("replica identity of %s is now %s (it was %s)", table, wanted, row[0])
