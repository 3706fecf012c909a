"""Remembers which commit a position is, to notice a log with another history: of a restored or another database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.connectors.change_tables import gap
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.shared_log import LogGap
from tailrace.connectors.sql_tables.tables import Connection

COMMITS = "commits"
"""In `log` of an offset: by database the LSN of a commit that was read, and what Dialect.commit says of it."""


def noted(
    dialect: Dialect, connection: Connection, log: Mapping[str, Any], to: LsnPosition
) -> dict[str, dict[str, list[str]]]:
    """The entry COMMITS at a position; the earlier commit of a database stays where nothing is known of this one."""
    before: Mapping[str, list[str]] = log.get(COMMITS, {})
    by_database = {}
    for database, lsn in to.lsns:
        last = before.get(database)
        if lsn and (last is None or last[0] != lsn):
            commit = dialect.commit(connection, database, lsn)
            last = last if commit is None else [lsn, commit]
        if last is not None:
            by_database[database] = last
    return {COMMITS: by_database} if by_database else {}


def changed(dialect: Dialect, connection: Connection, log: Mapping[str, Any]) -> LogGap | None:
    """The gap where a commit that was read is another one now, or is gone though those before and after it are kept."""
    for database, (lsn, commit) in log.get(COMMITS, {}).items():
        now = dialect.commit(connection, database, lsn)
        if now != commit and (now is not None or dialect.has_log_around(connection, database, lsn)):
            return gap.another(database, lsn, commit, now)
    return None
