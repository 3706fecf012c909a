"""Tells from a replica's table itself whether it is the one that was written last, and by nobody else since."""

from __future__ import annotations

from tailrace.sinks.replica.marks import Record
from tailrace.sinks.replica.states import SeenVersion
from tailrace.sinks.replica.table import Commit, Table


def seen(target: Table) -> SeenVersion:
    """What identifies a table and its version."""
    return SeenVersion(target.version, target.id)


def why_not_ours(target: Table | None, last: SeenVersion | None, query: str) -> str | None:
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
        return "another table is in the place of the replica's"
    if now.version < last.version:
        return _put_back(now.version, last)
    for commit in target.commits():
        if commit.version <= last.version:
            # Versions of Iceberg go on behind those that were left: what follows may be of another program as well.
            return None if commit.version == last.version else _put_back(commit.version, last)
        record = Record.from_text(commit.text)
        if commit.restores:
            return f"the replica's table was restored to an older version by {commit.writer}"
        if (record is None or record.query != query) and not commit.keeps_rows:
            return f"the replica's table was written by {_named(commit)}, which is not this pipeline"
    return None


def _put_back(version: int, last: SeenVersion) -> str:
    return f"the replica's table was put back to version {version}, and it had version {last.version}"


def _named(commit: Commit) -> str:
    return f"{commit.writer} ({commit.operation})"
