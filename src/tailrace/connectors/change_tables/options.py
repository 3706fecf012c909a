"""The properties of snapshots that connectors over change tables share."""

from __future__ import annotations

from tailrace.config import shared
from tailrace.config.kinds import COUNT, FLAG, NAMES, TEXT, choice
from tailrace.config.option import Option, Status, without_effect

READS = (
    Option("snapshot.query.mode", choice("select_all", refused={"custom": "use overrides"}), "select_all", "Reads."),
    Option("snapshot.select.statement.overrides", NAMES, None, "Tables to read by your own SELECT.", protects=True),
    Option("snapshot.select.statement.overrides.<table>", TEXT, None, "The SELECT of that table.", protects=True),
    Option("snapshot.fetch.size", COUNT, "10000", "Rows that are taken from the connection at once; 0: the default."),
    Option("legacy.snapshot.max.threads", FLAG, "false", "One table a reader.", Status.CONNECT, "Spark's cores decide"),
    Option(
        "snapshot.tables.order.by.row.count",
        choice("disabled", "ascending", "descending"),
        "disabled",
        "Order of tables by their rows.",
    ),
)
SCHEMA_CHANGES = Option(
    "incremental.snapshot.allow.schema.changes", FLAG, "false", "Schema.", Status.CONNECT, "they are always allowed"
)
_RESELECT = "values are taken as change tables have them, and none is selected again"
VALUES = without_effect(
    shared.VALUES,
    {"post.processors": _RESELECT, "<p>.reselect.": _RESELECT},
    instead="remove it, and select such values from the table where they are used",
)
