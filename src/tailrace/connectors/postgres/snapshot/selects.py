"""Decides which tables a snapshot reads, in which order and by which SELECT, and locks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.entrypoints import custom
from tailrace.config.overrides import origin_of, overrides
from tailrace.config.plugin_groups import LOCKS, QUERIES
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.config.snapshot_plugins import SnapshotLock, SnapshotQuery
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.options import (
    DATABASE_USER,
    SNAPSHOT_LOCK_TIMEOUT_MS,
    SNAPSHOT_LOCKING_MODE,
    SNAPSHOT_LOCKING_MODE_CUSTOM_NAME,
    SNAPSHOT_QUERY_MODE,
    SNAPSHOT_QUERY_MODE_CUSTOM_NAME,
)
from tailrace.connectors.postgres.server.connect import connect, first_line, is_transient, remedy_of
from tailrace.connectors.postgres.server.user_sql import check_select, has_rows, subquery
from tailrace.connectors.split_sizes import order_by_rows
from tailrace.connectors.user_select import UserSelect
from tailrace.errors import SourceError
from tailrace.model.table import TableId

_NO_RIGHT = "42501"
_HIDDEN = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))
"""


def in_order(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> list[TableId]:
    """The tables in the order of snapshot.tables.order.by.row.count: by the server's estimates, else by their rows."""
    order = order_by_rows(config)
    if order == "disabled":
        return list(tables)
    rows = connection.execute(
        "SELECT n.nspname, c.relname, c.reltuples FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p')"
    )
    estimates = {(schema, name): count for schema, name, count in rows}
    sizes = {table: estimates.get((table.schema, table.table), 0) for table in tables}
    for table in (table for table, estimate in sizes.items() if estimate < 0):  # the server has none yet
        with refusals(config, table, None):
            row = connection.execute(f"SELECT count(*) FROM {quoted(table)}".encode()).fetchone()
        sizes[table] = 0 if row is None else row[0]
    return sorted(tables, key=lambda table: sizes[table], reverse=order == "descending")


class Selects:
    """What is read of each table: all of it, or a SELECT of signals, overrides or code of one's own, in that order."""

    def __init__(self, config: Config) -> None:
        self._query: SnapshotQuery | None = custom(
            config, SNAPSHOT_QUERY_MODE, SNAPSHOT_QUERY_MODE_CUSTOM_NAME, QUERIES
        )
        self._overrides = overrides(config)

    def of(self, table: CapturedTable, given: str | None) -> tuple[bool, str | None]:
        """Whether the table is read, and its SELECT; None is all of it."""
        if given is not None or self._query is None:
            return True, given
        columns = [sql.Identifier(column.name).as_string() for column in table.schema.columns]
        select = self._query(quoted(table.schema.id), columns)
        return select is not None, select

    def origin(self, table: TableId, select: str | None, wanted: Mapping[str, str | None] | None) -> str | None:
        """What the user fixes where the SELECT of a table is wrong, None where it has none. `wanted` is a signal's."""
        if select is None:
            return None
        if (self._overrides if wanted is None else wanted).get(str(table)) is not None:
            return origin_of(str(table), of_signal=wanted is not None)
        return "the query of the code that snapshot.query.mode names"


def as_table(catalog: Catalog, table: CapturedTable, select: str, origin: str) -> str:
    """A SELECT of the user's with the columns of the table. Raises SourceError, and psycopg.Error unless it is one."""
    connection, id_ = catalog.connection, table.schema.id
    captured = {column.name for column in table.schema.columns}
    return UserSelect(id_, check_select(connection, select), catalog.names(id_), captured, origin).as_table(
        catalog.config,
        subquery(select).as_string(connection),
        lambda name: sql.Identifier(name).as_string(connection),
        lambda _: "NULL",
        lambda: has_rows(connection, select),
    )


def grants(config: Config, tables: Sequence[TableId]) -> list[str]:
    """The statements that let database.user read tables."""
    role = sql.Identifier(config[DATABASE_USER]).as_string()
    schemas = dict.fromkeys(sql.Identifier(table.schema).as_string() for table in tables)
    return [
        *(f"GRANT USAGE ON SCHEMA {schema} TO {role}" for schema in schemas),
        *(f"GRANT SELECT ON {quoted(table)} TO {role}" for table in tables),
    ]


def unreadable(connection: psycopg.Connection[Any]) -> set[tuple[str, str]]:
    """Schema and name of the tables that the role may not read as a whole."""
    return set(connection.cursor(row_factory=tuple_row).execute(_HIDDEN))


def missing_grants(connection: psycopg.Connection, config: Config) -> list[str]:
    """Those for the tables that the first snapshot reads and the role may not read as a whole."""
    catalog = Catalog(connection, config)
    hidden = unreadable(connection)
    wanted = [table for table in catalog.tables() if catalog.filter.snapshots(table)]
    tables = [table for table in wanted if (table.schema, table.table) in hidden]
    return grants(config, tables) if SnapshotMode.of(config).at_first else []


@contextmanager
def refusals(config: Config, table: TableId, origin: str | None) -> Iterator[None]:
    """Turn what the server refuses of a table, or of the SELECT from `origin`, into a SourceError that names it."""
    try:
        yield
    except psycopg.Error as error:
        if is_transient(error):
            raise
        lacks = error.sqlstate == _NO_RIGHT
        if lacks:
            remedy = "; ".join(grants(config, [table])) if origin is None else f"GRANT what it takes, or fix {origin}"
        else:
            remedy = remedy_of(error, "see the server's log" if origin is None else f"fix {origin}")
        raise SourceError(
            f"the snapshot cannot read the table: {first_line(error)}", where=str(table), remedy=remedy
        ) from error


def quoted(table: TableId) -> str:
    """A table's name as it stands in SQL."""
    return sql.Identifier(table.schema, table.table).as_string()


def locked(config: Config, tables: Sequence[TableId]) -> psycopg.Connection | None:
    """A connection that holds the locks of snapshot.locking.mode until it is closed, None where none are wanted.

    `shared` keeps schemas from being changed, as Debezium's does. Raises SourceError when one cannot be had within
    snapshot.lock.timeout.ms (0 or less: without limit, as PostgreSQL reads it).
    """
    timeout = max(config[SNAPSHOT_LOCK_TIMEOUT_MS], 0)
    statements = _statements(config, timeout, tables)
    if not statements:
        return None
    connection = connect(config, application="tailrace snapshot locks")
    try:
        connection.execute("BEGIN")
        connection.execute(f"SET LOCAL lock_timeout = {timeout}")
        for table, statement in statements:
            _lock(connection, table, statement, timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _statements(config: Config, timeout: int, tables: Sequence[TableId]) -> list[tuple[TableId, str]]:
    lock: SnapshotLock | None = custom(config, SNAPSHOT_LOCKING_MODE, SNAPSHOT_LOCKING_MODE_CUSTOM_NAME, LOCKS)
    if lock is None and config[SNAPSHOT_LOCKING_MODE] == "none":
        return []
    wanted = [
        (table, lock(timeout, quoted(table)) if lock else f"LOCK TABLE {quoted(table)} IN ACCESS SHARE MODE")
        for table in tables
    ]
    return [(table, statement) for table, statement in wanted if statement]


def _lock(connection: psycopg.Connection, table: TableId, statement: str, timeout: int) -> None:
    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        is_taken = isinstance(error, psycopg.errors.LockNotAvailable)
        remedy = "end what holds a lock on it (SELECT * FROM pg_locks), or raise snapshot.lock.timeout.ms"
        raise SourceError(
            f"the lock for the snapshot cannot be had within {timeout} ms" if is_taken else first_line(error),
            where=str(table),
            remedy=remedy
            if is_taken
            else remedy_of(error, "see snapshot.locking.mode; LOCK TABLE takes the right to SELECT"),
        ) from error
