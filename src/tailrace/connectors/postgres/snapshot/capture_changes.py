"""Tables added to a running pipeline and removed from it, as the signals add-tables and remove-tables ask.

An added table's changes are events from the batch on that takes the signal. Its rows are read, in the way the signal
says, once every transaction has ended that could have changed it unseen: before it was published, or in a stretch of
the log that was read without it.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import psycopg

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.server import publication
from tailrace.errors import SignalError
from tailrace.model.table import TableId
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.signals import ADD, Signal, requests

log = logging.getLogger(__name__)

NOT_READ = "none"
# Tables that signals may have added or removed, beside what the configuration says: the offset names them.
MOST_TABLES = 1000
_EXISTS = """
SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""


def change(connection: psycopg.Connection, config: Config, signal: Signal, progress: Progress) -> Progress:
    """The state after a signal that adds or removes tables; what is malformed is logged and ignored.

    `config` is that of the pipeline's start. Raises SourceError, and SignalError for more than an offset should hold.
    """
    content, database = signal.content(), config.text("database.dbname")
    if content is None:
        return progress
    listed = content.get("data-collections")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    tables = [TableId.parse(name, database) for name in names]
    if signal.type == ADD:
        found = [table for table in tables if connection.execute(_EXISTS, [table.schema, table.table]).rowcount]
    else:
        present = Catalog(connection, replace(config, tables=progress.tables)).tables()
        found = [table for table in tables if table in present]
    for table in tables:
        if table not in found:
            log.warning("signal %s: there is no table %s", signal.id, table)
    if not found:
        log.warning("signal %s is ignored, it names no table: %s", signal.id, signal.shown)
        return progress
    decided = dict(progress.tables) | {table.written: signal.type == ADD for table in found}
    changed = settled(config, replace(progress, tables=tuple(decided.items())))
    if len(changed.tables) > MOST_TABLES:
        what = f"more than {MOST_TABLES:,} tables would be added or removed beside what the filters say"
        raise SignalError(what, remedy="change the filters instead, and start the pipeline again")
    if signal.type == ADD:
        return _added(connection, config, signal, progress, changed, found)
    publication.exclude(connection, config, found)
    return changed.without([str(table) for table in found])


def settled(config: Config, progress: Progress) -> Progress:
    """Without those tables of which the configuration by now says the same."""
    said = TableFilter.from_config(replace(config, tables=()))
    tables = [(TableId.parse(name, config.text("database.dbname")), name, is_in) for name, is_in in progress.tables]
    left = tuple((name, is_in) for table, name, is_in in tables if said.captures(table) != is_in)
    return replace(progress, tables=left)


def is_ready(connection: psycopg.Connection, progress: Progress) -> bool:
    """Whether all transactions have ended that a read has to wait for."""
    row = connection.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8").fetchone()
    return progress.wait is None or (row is not None and int(row[0]) > progress.wait)


def _added(
    connection: psycopg.Connection,
    config: Config,
    signal: Signal,
    before: Progress,
    changed: Progress,
    tables: list[TableId],
) -> Progress:
    """The state with added tables, and what is to be read of them; as before where the signal says that wrongly."""
    how = str((signal.content() or {}).get("type", "")).lower()
    asked = [] if how == NOT_READ else requests(signal, tables)
    wanted = [request for request in asked if request.table in map(str, tables)]
    if how != NOT_READ and not wanted:
        return before
    after = changed.asking(wanted)
    publication.include(connection, config, tables)
    # On a standby commits are seen in the order in which the log has them, so there is nothing to wait for.
    row = connection.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_xact_id()::text::int8 END"
    ).fetchone()
    return replace(after, wait=None if row is None else row[0])
