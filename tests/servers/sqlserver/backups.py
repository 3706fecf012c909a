"""Backups of the double's databases: what BACKUP and RESTORE WITH KEEP_CDC do, for tables that stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .backend import Backend


def back_up(backend: Backend, number: int) -> None:
    """Keep the rows of a database's tables, and where its log ends."""
    backend.run(f"DROP SCHEMA IF EXISTS backup_{number} CASCADE; CREATE SCHEMA backup_{number}")
    for schema, table in _tables(backend, number):
        backend.run(f"CREATE TABLE backup_{number}.{schema}_{table} AS TABLE {schema}.{table}")
    backend.run(f"CREATE TABLE backup_{number}.position AS SELECT last_value FROM log.position_{number}")


def restore(backend: Backend, number: int) -> None:
    """Put them back. Log records that follow have positions that were given before."""
    backend.run("BEGIN; SET LOCAL session_replication_role = replica")
    for schema, table in _tables(backend, number):
        backend.run(
            f"DELETE FROM {schema}.{table}; INSERT INTO {schema}.{table} SELECT * FROM backup_{number}.{schema}_{table}"
        )
    backend.run(
        f"DELETE FROM cat.transactions WHERE database_id = {number};"
        f"SELECT setval('log.position_{number}', last_value) FROM backup_{number}.position; COMMIT"
    )


def _tables(backend: Backend, number: int) -> list[tuple[str, str]]:
    objects = f"SELECT object_id FROM cat.objects WHERE database_id = {number} AND type = 'U'"
    rows = backend.run(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname IN ('u', 'log') AND c.relkind = 'r'"
        f" AND c.relname IN (SELECT 't' || o.object_id FROM ({objects}) o)"
    ).rows
    return [(str(schema), str(table)) for schema, table in rows]
