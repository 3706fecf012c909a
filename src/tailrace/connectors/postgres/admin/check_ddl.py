"""Checks the DDL triggers: their owner, and whether the publication contains their reports."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.admin.check_tables import quoted
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.options import PUBLICATION_AUTOCREATE_MODE, PUBLICATION_NAME, ROWS_FOR_REPLICA

log = logging.getLogger(__name__)

TABLE = ".".join(map(quoted, event_triggers.TABLE))
_PUBLISHED = """
SELECT p.pubinsert, EXISTS (
  SELECT FROM pg_publication_tables t WHERE t.pubname = p.pubname AND (t.schemaname, t.tablename) = (%s, %s))
FROM pg_publication p WHERE p.pubname = %s
"""


def ddl_findings(connection: psycopg.Connection[Any], config: Config) -> Iterator[Finding]:
    """What is to be said about the DDL triggers, which are optional."""
    triggers = event_triggers.triggers(connection)
    again = f"as a superuser: {event_triggers.install_command(config)}"
    if triggers is None:
        cost = ": a replica reads tables again whose columns or names change" if config[ROWS_FOR_REPLICA] else ""
        yield Finding("ddl", True, f"no DDL triggers{cost}: `init --ddl`")
    elif triggers.table is None:
        what = f"the DDL triggers have no table {TABLE} to report to: schema changes are not reported"
        yield Finding("ddl", None, what, again)
    elif not triggers.is_theirs:
        what = f"other roles than the owner of the DDL triggers may write {TABLE}: what is reported there is ignored"
        yield Finding("ddl", None, what, again)
    else:
        yield _published(connection, config, triggers)


def warn_of_triggers(connection: psycopg.Connection[Any], config: Config) -> None:
    """Log why schema changes will not be reported, where somebody has installed triggers for that."""
    for finding in ddl_findings(connection, config) if SnapshotMode.of(config).streams else ():
        if not finding.ok:
            log.warning("%s; remedy: %s", finding.what, finding.remedy)


def _published(connection: psycopg.Connection[Any], config: Config, triggers: event_triggers.Triggers) -> Finding:
    name, mode = config[PUBLICATION_NAME], config[PUBLICATION_AUTOCREATE_MODE]
    row = connection.cursor(row_factory=tuple_row).execute(_PUBLISHED, [*event_triggers.TABLE, name]).fetchone()
    is_added = mode == "filtered" and triggers.is_ours
    if row is None and (mode == "all_tables" or is_added):
        return Finding("ddl", True, f"DDL triggers report schema changes; {name} will have their table {TABLE}")
    if row is None or not (row[1] or is_added):
        when = "" if row is not None else "once the publication is there, "
        what = f"{name} lacks {TABLE}, the table of the DDL triggers: schema changes are not reported"
        return Finding("ddl", None, what, f"{when}as a superuser: ALTER PUBLICATION {quoted(name)} ADD TABLE {TABLE}")
    if not row[0]:
        what = (
            f"{name} does not publish insert: schema changes, which the DDL triggers insert into {TABLE}, do not come"
        )
        return Finding("ddl", None, what, "publish inserts, and leave c out of skipped.operations")
    return Finding("ddl", True, "DDL triggers report schema changes")
