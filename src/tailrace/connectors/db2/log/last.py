"""Finds the last change up to a position, for the `source` block of events that are not changes."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.change_tables.tables import Instance, LastChange
from tailrace.connectors.db2.position import literal_of
from tailrace.connectors.sql_tables.tables import Connection


def last_change(connection: Connection, instances: Sequence[Instance], until: str) -> LastChange | None:
    """The last change in these change tables up to a commit, None if there is none."""
    latest: LastChange | None = None
    for instance in instances:
        rows = connection.rows(
            f"SELECT IBMSNAP_COMMITSEQ, IBMSNAP_INTENTSEQ FROM {instance.changes} "
            f"WHERE IBMSNAP_COMMITSEQ <= {literal_of(until)} "
            "ORDER BY IBMSNAP_COMMITSEQ DESC, IBMSNAP_INTENTSEQ DESC FETCH FIRST 1 ROWS ONLY"
        )
        for commit, change in rows:
            each = LastChange(text_of(commit), text_of(change), 1)
            if latest is None or (each.commit, each.change or "") > (latest.commit, latest.change or ""):
                latest = each
    return latest
