"""Adds tables to a running pipeline and removes them, for the signals add-tables and remove-tables.

An added table's changes are events from the batch on that takes the signal. Its rows are read, in the way the signal
says, once every transaction has ended that could have changed it unseen: before the log had its changes, or in a range
of the log that was read without it.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from tailrace.config import Config
from tailrace.config.filters import TableFilter, table_named
from tailrace.connectors.signal import Signal
from tailrace.connectors.snapshot_ports import OnDemandSnapshots
from tailrace.errors import SignalError
from tailrace.model.table import TableId
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.signals import ADD, requests

log = logging.getLogger(__name__)

NOT_READ = "none"
# The most tables that signals may add or remove in addition to the configuration: the offset lists them.
MOST_TABLES = 1000


def change(server: OnDemandSnapshots, config: Config, signal: Signal, progress: Progress) -> Progress:
    """The state after a signal that adds or removes tables; what is malformed is logged and ignored.

    `config` is that of the pipeline's start. Raises SourceError, and SignalError for more than an offset should hold.
    """
    content = signal.content()
    if content is None:
        return progress
    listed = content.get("data-collections")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    tables = [table_named(config, name) for name in names]
    if signal.type == ADD:
        existing = server.existing(tables)
    else:
        present = server.tables(replace(config, tables=progress.tables))
        existing = [table for table in tables if table in present]
    for table in tables:
        if table not in existing:
            log.warning("signal %s: there is no table %s", signal.id, table)
    if not existing:
        log.warning("signal %s is ignored, it names no table: %s", signal.id, signal.shown)
        return progress
    decided = dict(progress.tables) | {table.written: signal.type == ADD for table in existing}
    changed = settled(config, replace(progress, tables=tuple(decided.items())))
    if len(changed.tables) > MOST_TABLES:
        what = f"more than {MOST_TABLES:,} tables would be added or removed beside what the filters say"
        raise SignalError(what, remedy="change the filters instead, and start the pipeline again")
    if signal.type == ADD:
        return _added(server, config, signal, progress, changed, existing)
    server.exclude(config, existing)
    return changed.without([str(table) for table in existing])


def settled(config: Config, progress: Progress) -> Progress:
    """The state without added or removed tables for which the configuration says the same by now."""
    said = TableFilter.from_config(replace(config, tables=()))
    tables = [(table_named(config, name), name, is_in) for name, is_in in progress.tables]
    left = tuple((name, is_in) for table, name, is_in in tables if said.captures(table) != is_in)
    return replace(progress, tables=left)


def _added(
    server: OnDemandSnapshots,
    config: Config,
    signal: Signal,
    before: Progress,
    changed: Progress,
    tables: list[TableId],
) -> Progress:
    """The state with added tables and the requests to read them; unchanged if the signal is malformed."""
    how = str((signal.content() or {}).get("type", "")).lower()
    asked = [] if how == NOT_READ else requests(signal, tables)
    wanted = [request for request in asked if request.table in map(str, tables)]
    if how != NOT_READ and not wanted:
        return before
    after = changed.asking(wanted)
    server.include(config, tables)
    return replace(after, wait=server.unseen_until())
