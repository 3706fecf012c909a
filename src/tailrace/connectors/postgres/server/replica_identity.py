"""Replica identities, set at each start as `replica.identity.autoset.values` says."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.connectors.postgres.options import REPLICA_IDENTITY_AUTOSET_VALUES
from tailrace.connectors.postgres.server.connect import first_line
from tailrace.errors import ConfigError, SourceError
from tailrace.javalike.patterns import compile_pattern
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

_CURRENT = """
SELECT CASE c.relreplident WHEN 'd' THEN 'DEFAULT' WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE 'INDEX ' ||
  (SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
   WHERE i.indrelid = c.oid AND i.indisreplident)
END, pg_has_role(c.relowner, 'USAGE')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""

OWNERS_ONLY = "which takes the table's owner"


@dataclass(frozen=True)
class Setting:
    """A replica identity that a start sets, and whether the role may, which takes the table's owner."""

    table: TableId
    before: str
    after: str
    statement: sql.Composed
    is_allowed: bool

    @property
    def what(self) -> str:
        """What the start does, in words."""
        return f"the replica identity of {self.table} will be {self.after} (it is {self.before})"

    @property
    def remedy(self) -> str:
        """What helps a role that may not do it."""
        return f"as the table's owner: {self.statement.as_string()}"


def plan(connection: psycopg.Connection[Any], config: Config, tables: Sequence[TableId]) -> list[Setting]:
    """The identities that differ from what the property names. Raises ConfigError when two entries match one table."""
    entries = [entry.partition(":") for entry in config[REPLICA_IDENTITY_AUTOSET_VALUES]]
    wishes = [(compile_pattern(pattern.strip()), " ".join(wish.split())) for pattern, _, wish in entries]
    settings = []
    for table in tables if wishes else ():
        matching = [wish for pattern, wish in wishes if pattern.fullmatch(str(table))]
        if len(matching) > 1:
            raise ConfigError(
                f"More than one regular expression matches table {table}",
                where="replica.identity.autoset.values",
                remedy="let one entry match the table",
            )
        if matching and (setting := _setting(connection, table, matching[0])) is not None:
            settings.append(setting)
    return settings


def _setting(connection: psycopg.Connection[Any], table: TableId, wish: str) -> Setting | None:
    kind, _, index = wish.partition(" ")
    row = connection.cursor(row_factory=tuple_row).execute(_CURRENT, [table.schema, table.table]).fetchone()
    wanted = f"INDEX {index}" if index else kind.upper()
    if row is None or row[0] == wanted:
        return None
    how = sql.SQL("USING INDEX {}").format(sql.Identifier(index)) if index else sql.SQL(kind.upper())
    name = sql.Identifier(table.schema, table.table)
    return Setting(table, row[0], wanted, sql.SQL("ALTER TABLE {} REPLICA IDENTITY {}").format(name, how), row[1])


def autoset(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> None:
    """Set the identities of the plan. Raises ConfigError, and SourceError when the server refuses."""
    for setting in plan(connection, config, tables):
        if not setting.is_allowed:
            raise SourceError(f"{setting.what}, {OWNERS_ONLY}", remedy=setting.remedy)
        try:
            connection.execute(setting.statement)
        except psycopg.Error as error:
            what = f"cannot set the replica identity: {first_line(error)}"
            raise SourceError(what, where=str(setting.table), remedy=setting.remedy) from error
        log.info("replica identity of %s is now %s (it was %s)", setting.table, setting.after, setting.before)
