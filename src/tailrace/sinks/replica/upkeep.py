"""Keeps a replica's table small: joins small files, deletes files and commits of versions that are old enough.

It runs right after a micro-batch has written the table, in the task that wrote it, so that it never meets another
write. Why these numbers: docs/decisions/0017-replicas-are-maintained.md.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from tailrace.sinks.replica import retention
from tailrace.sinks.replica.marks import USER_METADATA, newest
from tailrace.sinks.replica.target import Target
from tailrace.spark import failpoint

# A merge rewrites each file it touches: large ones cost, as many small ones do.
FILE_BYTES = 32 << 20
# So many files of less than half of that are joined. They are counted every few commits.
_SMALL_FILES, _COMMITS = 32, 16
_MOST_SECONDS_BETWEEN = 3600
# The folder of a table of more files is listed with those checks alone.
_FEW_FILES = 1000


@dataclass(frozen=True)
class Upkeep:
    """What is kept: versions of a table stay readable for so many minutes after a newer one has replaced them.

    None: for as long as the disk space allows, see retention.py.
    """

    retention_minutes: int | None = None

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a new table."""
        return self._properties(self._fixed or retention.LONGEST_SECONDS)

    @property
    def _fixed(self) -> int | None:
        return None if self.retention_minutes is None else self.retention_minutes * 60

    def _properties(self, seconds: int) -> dict[str, str]:
        """The table properties with these values, also for other writers. Every writer cleans the log."""
        return retention.properties(seconds) | {"delta.targetFileSize": str(FILE_BYTES)}

    def after(self, place: Target, query: str, first: int) -> str | None:
        """Do what is due once a micro-batch has written a table, in commits from `first` on; what failed, if anything.

        The replica is right without it, so a failure does not stop the pipeline.
        """
        try:
            target = place.open()
            if target is not None:
                self._after(target, query, first)
        except (DeltaError, OSError) as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            what = "old files could not be removed or joined, which is tried again later"
            return f"{place.table} in {place.root}: {what}: {text}"
        return None

    def _after(self, target: DeltaTable, query: str, first: int) -> None:
        seconds = self._fixed or retention.kept_seconds(target.metadata().configuration)
        is_due = _passed(target, first, seconds)
        is_counted = (first - 1) // _COMMITS != target.version() // _COMMITS
        live = _files(target)
        space = None
        if self._fixed is None and (is_due or is_counted or len(live) <= _FEW_FILES):
            space = retention.space(target, live)
        is_full = space is not None and space.is_over()
        if not (is_due or is_counted or is_full):
            return
        work = _Work(self, target, query)
        if is_due:
            work.set_retention(seconds)
        if sum(size < FILE_BYTES // 2 for size in live.values()) >= _SMALL_FILES:
            target.optimize.compact(target_size=FILE_BYTES, commit_properties=work.properties)
        failpoint.reach("in-upkeep")
        if is_due or is_full:
            work.remove(seconds, space)


@dataclass(frozen=True)
class _Work:
    """Maintenance of one table."""

    upkeep: Upkeep
    target: DeltaTable
    query: str

    @cached_property
    def properties(self) -> CommitProperties:
        """The properties of its commits, which bring no changes: they repeat what the table holds of the query's."""
        record = newest(self.target, self.query)
        text = None if record is None else record.to_text(is_repeated=True)
        return CommitProperties(custom_metadata={} if text is None else {USER_METADATA: text})

    def set_retention(self, seconds: int) -> None:
        wanted, configuration = self.upkeep._properties(seconds), self.target.metadata().configuration
        if any(configuration.get(name) != value for name, value in wanted.items()):
            self.target.alter.set_table_properties(wanted, raise_if_not_exists=False, commit_properties=self.properties)

    def remove(self, seconds: int, space: retention.Space | None) -> None:
        """Remove what is old enough. With `space` the retention is shorter while too much is left, and then longer."""
        removed = self.target.vacuum(full=True)
        while space is not None and space.is_over(removed) and (shorter := space.shorter(seconds)) is not None:
            seconds = shorter
            self.set_retention(seconds)
            removed = self.target.vacuum(full=True)
        if removed:
            self.target.vacuum(dry_run=False, full=True, commit_properties=self.properties)
        if space is not None:
            self.set_retention(space.longer(seconds, removed))


def _passed(target: DeltaTable, first: int, seconds: int) -> bool:
    """Whether the clock has passed a mark since the commit before: so no state is kept, nor lost by a restart."""
    commits = target.history(target.version() - first + 2)
    period = min(max(seconds // 2, 1), _MOST_SECONDS_BETWEEN) * 1000
    # Not all tables at once.
    shift = zlib.crc32(target.table_uri.encode()) % period
    newest_slot, slot_before = ((commits[at]["timestamp"] + shift) // period for at in (0, -1))
    return bool(newest_slot != slot_before)


def _files(target: DeltaTable) -> dict[str, int]:
    """The files of a table's newest version, and their bytes."""
    files = pa.table(target.get_add_actions(flatten=True))
    return dict(zip(files.column("path").to_pylist(), files.column("size_bytes").to_pylist(), strict=True))
