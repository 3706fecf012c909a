"""The properties of snapshots that connectors over change tables share."""

from __future__ import annotations

from dataclasses import replace

from tailrace.config import shared
from tailrace.config.kinds import FLAG, choice
from tailrace.config.option import Option, OptionStatus, without_effect
from tailrace.config.options import databases

READS = (
    Option("snapshot.query.mode", choice("select_all", refused={"custom": "use overrides"}), "select_all", "Reads."),
    databases.SNAPSHOT_SELECT_STATEMENT_OVERRIDES,
    databases.SNAPSHOT_SELECT_STATEMENT_OVERRIDES_TABLE,
    databases.SNAPSHOT_FETCH_SIZE,
    replace(databases.LEGACY_SNAPSHOT_MAX_THREADS, status=OptionStatus.CONNECT, note="Spark's cores decide"),
    databases.SNAPSHOT_TABLES_ORDER_BY_ROW_COUNT,
)
SCHEMA_CHANGES = Option(
    "incremental.snapshot.allow.schema.changes",
    FLAG,
    "false",
    "Schema.",
    OptionStatus.CONNECT,
    "they are always allowed",
)
_RESELECT = "values are taken as change tables have them, and none is selected again"
VALUES = without_effect(
    shared.VALUES,
    {"post.processors": _RESELECT, "<p>.reselect.": _RESELECT},
    instead="remove it, and select such values from the table where they are used",
)
