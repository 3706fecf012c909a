"""Finds the last change up to a position, for the `source` block of events that are not changes."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.connectors.change_tables.changes import AFTER
from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.change_tables.tables import Instance, LastChange
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.position import literal_of

_FIELDS = "[__$start_lsn], [__$seqval], [__$operation]"


def last_change(connection: Connection, instances: Sequence[Instance], until: str) -> LastChange | None:
    """The last change of these instances up to a commit, None if there is none."""
    latest: LastChange | None = None
    for instance in instances:
        own = until if instance.stop is None else min(until, instance.stop)
        sign = "<=" if own == until else "<"
        rows = connection.rows(
            f"SELECT TOP 1 {_FIELDS} FROM {instance.changes} WHERE [__$start_lsn] {sign} {literal_of(own)} "
            "ORDER BY [__$start_lsn] DESC, [__$seqval] DESC, [__$operation] DESC"
        )
        for commit, change, kind in rows:
            each = LastChange(text_of(commit), text_of(change), 2 if kind == AFTER else 1)
            if latest is None or (each.commit, each.change or "") > (latest.commit, latest.change or ""):
                latest = each
    return latest
