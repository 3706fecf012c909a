"""A snapshot that another program makes beside the table's rows, and that becomes them in a commit of our own.

Spark's MERGE commits by itself: it reads whichever snapshot is the newest when it begins, and repeats its commit on top
of a newer one. So it gets a branch that holds the version which was looked at, and its snapshot becomes the table's
newest one if nothing came between. A branch that a killed process has left is set again by the next MERGE.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetPropertiesUpdate, TableUpdate

from tailrace.sinks.replica.iceberg.commits import (
    MARK,
    SnapshotChange,
    branch_is,
    branch_set,
    commit,
    refuse_others,
    summary_of,
    tried,
    written,
)
from tailrace.sinks.replica.table import LostRaceError, Mark

BRANCH = "tailrace"
# MERGE deletes rows by their positions, one file of deletes for each of its tasks, as pyiceberg's engine does. It reads
# all rows of its keys, so rows that others add meanwhile are a conflict.
PROPERTIES: Mapping[str, str] = {
    "write.merge.mode": "merge-on-read",
    "write.merge.isolation-level": "serializable",
    "write.delete.granularity": "partition",
}


def begin(table: Table) -> Snapshot:
    """Give the branch the table's version; its snapshot. Raises CommitFailedException if that is not the newest one.

    Raises LakeError for a table that replicas do not write.
    """
    refuse_others(table)
    if table.current_snapshot() is None:  # of a process that was killed while it made the table
        commit(table, SnapshotChange(Operation.APPEND), Mark(None, -1, "{}"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    updates: list[TableUpdate] = [branch_set(BRANCH, snapshot)]
    wanted = {name: text for name, text in PROPERTIES.items() if table.properties.get(name) != text}
    if wanted:
        updates.append(SetPropertiesUpdate(updates=wanted))
    tried(table, updates, [branch_is(MAIN_BRANCH, snapshot)])
    return snapshot


def publish(table: Table, before: Snapshot, mark: Mark) -> Snapshot:
    """Make the branch's snapshot the table's newest one; `table` is as `begin` has left it.

    Raises LostRaceError, or CommitFailedException, where it is not the one that was made of `before` with this mark, or
    where `before` is not the newest one any more.
    """
    table.refresh()
    made = table.snapshot_by_name(BRANCH)
    if made is None or made.parent_snapshot_id != before.snapshot_id or summary_of(made).get(MARK) != mark.text:
        raise LostRaceError("another process has written the branch of the table that this one was writing")
    updates: list[TableUpdate] = [
        branch_set(MAIN_BRANCH, made),
        RemoveSnapshotRefUpdate.model_validate({"ref-name": BRANCH}),
    ]
    if written(mark):
        updates.append(SetPropertiesUpdate(updates=written(mark)))
    tried(table, updates, [branch_is(MAIN_BRANCH, before), branch_is(BRANCH, made)])
    return made
