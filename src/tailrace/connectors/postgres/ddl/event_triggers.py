"""The DDL triggers: event triggers that insert a row into a table of their own for each change of a table's definition.

Only they may write that table, so no other role can report a change; the log has the row between the rows of tables
before and after it. Before a row is accepted, the catalog is queried whether the table is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.filters import OWN_SCHEMA
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.postgres.server.connect import address, connect, first_line
from tailrace.errors import SourceError

VERSION = 2
_TRIGGERS_THERE_ARE = 2
TABLE = (OWN_SCHEMA, "changes")
CONTENT = "content"

REMOVE = f"""\
DROP EVENT TRIGGER IF EXISTS tailrace_ddl_end;
DROP EVENT TRIGGER IF EXISTS tailrace_ddl_drop;
DROP SCHEMA IF EXISTS {OWN_SCHEMA} CASCADE;
"""

# Only who may make event triggers can have made the trigger. Schema, table and function must have the same owner, and
# no other role may write the table or a column of it, or attach a trigger to it.
_TRIGGERS = f"""
SELECT c.oid::int8, coalesce(
    n.nspowner = e.evtowner AND c.relowner = e.evtowner AND p.proowner = e.evtowner AND p.pronamespace = n.oid
    AND NOT EXISTS (
      SELECT FROM aclexplode(c.relacl) a
      WHERE a.grantee <> c.relowner AND a.privilege_type IN ('INSERT', 'UPDATE', 'TRIGGER'))
    AND NOT EXISTS (
      SELECT FROM pg_attribute t, aclexplode(t.attacl) a
      WHERE t.attrelid = c.oid AND a.grantee <> c.relowner AND a.privilege_type IN ('INSERT', 'UPDATE')), false),
  coalesce(pg_has_role(c.relowner, 'USAGE'), false)
FROM pg_event_trigger e JOIN pg_proc p ON p.oid = e.evtfoid
LEFT JOIN (pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = '{TABLE[1]}' AND c.relkind = 'r')
  ON n.nspname = '{TABLE[0]}'
WHERE e.evtname = 'tailrace_ddl_end'
"""
_OTHERS = """
SELECT slot_name FROM pg_replication_slots
WHERE database = current_database() AND slot_type = 'logical' AND slot_name <> %s ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Triggers:
    """The DDL triggers of a database: the number of their table, None where there is no such table.

    `is_theirs`: no other role may write it, `is_ours` whether the connection's role may act as its owner.
    """

    table: int | None
    is_theirs: bool
    is_ours: bool


def triggers(connection: psycopg.Connection[Any]) -> Triggers | None:
    """The DDL triggers that the database has. Raises psycopg.Error."""
    row = connection.cursor(row_factory=tuple_row).execute(_TRIGGERS).fetchone()
    return None if row is None else Triggers(*row)


def reporting_since(connection: psycopg.Connection[Any], full: str) -> tuple[int, int] | None:
    """The table of the triggers, and the transaction since which they report; None if they do not, or may be forged.

    `full` is SQL that makes the number of a transaction ({}) one of 64 bits. Raises psycopg.Error.
    """
    ours = triggers(connection)
    if ours is None or ours.table is None or not ours.is_theirs:
        return None
    query = (
        f"SELECT count(*), max({full.format('xmin')}) FROM pg_event_trigger "
        "WHERE evtname IN ('tailrace_ddl_end', 'tailrace_ddl_drop') AND evtenabled IN ('O', 'A')"
    )
    row = connection.cursor(row_factory=tuple_row).execute(query.encode()).fetchone()
    return None if row is None or row[0] < _TRIGGERS_THERE_ARE else (ours.table, row[1])


def may_publish(connection: psycopg.Connection[Any]) -> bool:
    """Whether there are DDL triggers whose table the connection's role may add to a publication."""
    ours = triggers(connection)
    return ours is not None and ours.is_theirs and ours.is_ours


@cache
def install_statements() -> str:
    """The SQL that makes the triggers, or makes them again."""
    return files(__package__).joinpath("ddl.sql").read_text(encoding="utf-8")


def install_command(config: Config) -> str:
    """What a person runs to make the triggers, or to make them again."""
    return f"tailrace init postgresql://<superuser>@{address(config)} --ddl"


def install(config: Config) -> None:
    """Makes the triggers, or makes them again. Raises SourceError with the statements for somebody who may."""
    with connect(config) as connection:
        try:
            connection.execute(install_statements().encode())
        except psycopg.Error as error:
            remedy = f"Have a superuser run this in the database, on the primary:\n\n{install_statements()}"
            where = f"DDL triggers of {config[DATABASE_DBNAME]}"
            raise SourceError(f"cannot be made: {first_line(error)}", where=where, remedy=remedy) from error


def remove(connection: psycopg.Connection, slot: str) -> list[str]:
    """Removes the triggers if no slot but `slot` is left that may want them; what was done, in no line or one."""
    if triggers(connection) is None:
        return []
    others = [name for (name,) in connection.execute(_OTHERS, [slot])]
    if others:
        return [f"DDL triggers: kept, as other slots may need them: {', '.join(others)}"]
    try:
        connection.execute(REMOVE.encode())
    except psycopg.errors.InsufficientPrivilege as error:
        return [f"DDL triggers: kept, {first_line(error)}; a superuser runs: {' '.join(REMOVE.split())}"]
    return ["DDL triggers: dropped"]
