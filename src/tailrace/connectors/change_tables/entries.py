"""The entries that the log of change tables has in the `log` of an offset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.connectors.change_tables.gap import Known, is_known
from tailrace.connectors.change_tables.tables import Instance

# The change tables whose rows belong to the log up to there (gap.Known).
INSTANCES = "instances"
# By database: the numbers of tables whose structures were sent before the tables had a change table.
SENT = "structures_sent"
# By database: the numbers of change tables that had no rows yet when the tables were read, or begin later.
WAITING = "instances_waiting"
# Present while the structures of tables are still to be sent.
UNTOLD = "structures_untold"


def unreached(stored: Known, instances: Sequence[Instance]) -> dict[str, Any]:
    """The offset's entry WAITING: those of the instances that the log has not reached; empty if there is none."""
    by_database: dict[str, list[int]] = {}
    for each in instances:
        if not is_known(stored, each):
            by_database.setdefault(each.table.database, []).append(each.number)
    return {WAITING: by_database} if by_database else {}


def still_without(sent: Mapping[str, Sequence[int]], read: Sequence[Instance]) -> dict[str, Any]:
    """The offset's entry SENT without the tables that have a change table by now; empty if none is left."""
    numbers = {(each.table.database, each.source) for each in read}
    left = {name: [each for each in of_database if (name, each) not in numbers] for name, of_database in sent.items()}
    left = {name: of_database for name, of_database in left.items() if of_database}
    return {SENT: left} if left else {}
