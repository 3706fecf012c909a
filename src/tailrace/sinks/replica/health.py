"""Tells from a replica's table itself whether it is the one that was written last, and by nobody else since."""

from __future__ import annotations

from deltalake import DeltaTable

from tailrace.sinks.replica.marks import USER_METADATA, Record
from tailrace.sinks.replica.states import Seen

# Operations of Delta that leave the rows as they are.
_WITHOUT_ROWS = (
    *("OPTIMIZE", "VACUUM START", "VACUUM END", "FSCK", "REORG", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"),
    *("SET TABLE PROPERTIES", "ADD CONSTRAINT", "DROP CONSTRAINT", "ADD COLUMNS", "ADD COLUMN", "CHANGE COLUMN"),
    *("UPGRADE PROTOCOL", "ADD FEATURE", "DROP FEATURE", "UPDATE SCHEMA", "UPDATE FIELD METADATA", "CLUSTER BY"),
    *("UPDATE TABLE METADATA", "COMPUTE STATS", "CREATE TABLE"),
)


def seen(target: DeltaTable) -> Seen:
    """What identifies a table and its version."""
    return Seen(int(target.version()), str(target.metadata().id))


def why_not_ours(target: DeltaTable | None, last: Seen | None, query: str) -> str | None:
    """Why a table may hold other rows than those that were written last; None if it holds these.

    `last` is the table as it was after the last micro-batch that wrote it, None if that is not known. Newer commits
    may be those of a run that was killed before it could store that.
    """
    if last is None:
        return None
    if target is None:
        return "the replica's table was deleted"
    now = seen(target)
    if now.id != last.id:
        return "another Delta table is in the place of the replica's"
    if now.version < last.version:
        return f"the replica's table was put back to version {now.version}, and it had version {last.version}"
    for commit in target.history(now.version - last.version) if now.version > last.version else ():
        record, operation = Record.from_text(commit.get(USER_METADATA)), str(commit.get("operation", ""))
        if operation == "RESTORE":
            return f"the replica's table was restored to an older version by {_writer(commit)}"
        if (record is None or record.query != query) and operation.upper() not in _WITHOUT_ROWS:
            return f"the replica's table was written by {_writer(commit)}, which is not this pipeline ({operation})"
    return None


def _writer(commit: dict[str, object]) -> str:
    return str(commit.get("engineInfo") or commit.get("clientVersion") or "another program")
