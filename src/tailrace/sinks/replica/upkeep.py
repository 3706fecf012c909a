"""Keeps a replica's table small: joins small files, deletes files and commits of versions that are old enough.

It runs right after a micro-batch has written the table, in the task that wrote it, so that it never meets another
write. Why these numbers: docs/decisions/0017-replicas-are-maintained.md.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from tailrace.sinks.replica.marks import USER_METADATA, newest
from tailrace.sinks.replica.target import Target
from tailrace.spark import failpoint

# A merge rewrites each file it touches: large ones cost, as many small ones do.
FILE_BYTES = 32 << 20
# So many files of less than half of that are joined. They are counted every few commits.
_SMALL_FILES, _COMMITS = 32, 16
_MOST_MINUTES_BETWEEN = 60


@dataclass(frozen=True)
class Upkeep:
    """What is kept: versions of a table stay readable for so many minutes after a newer one has replaced them."""

    retention_minutes: int

    @property
    def properties(self) -> dict[str, str]:
        """The table properties with these values, also for other writers. Every writer cleans the log."""
        retention = f"interval {self.retention_minutes} minutes"
        return {
            "delta.deletedFileRetentionDuration": retention,
            "delta.logRetentionDuration": retention,
            "delta.targetFileSize": str(FILE_BYTES),
        }

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
        last = target.version()
        is_due = self._is_due(target, first)
        if is_due or (first - 1) // _COMMITS != last // _COMMITS:
            record = newest(target, query)
            text = None if record is None else record.to_text(is_repeated=True)
            properties = CommitProperties(custom_metadata={} if text is None else {USER_METADATA: text})
            if is_due and self._differs(target.metadata().configuration):
                target.alter.set_table_properties(
                    self.properties, raise_if_not_exists=False, commit_properties=properties
                )
            if _small_files(target) >= _SMALL_FILES:
                target.optimize.compact(target_size=FILE_BYTES, commit_properties=properties)
            failpoint.reach("in-upkeep")
            if is_due and target.vacuum(full=True):
                target.vacuum(dry_run=False, full=True, commit_properties=properties)

    def _is_due(self, target: DeltaTable, first: int) -> bool:
        """Whether the clock has passed a mark since the commit before: so no state is kept, nor lost by a restart."""
        commits = target.history(target.version() - first + 2)
        minutes = min(max(self.retention_minutes // 2, 1), _MOST_MINUTES_BETWEEN)
        # Not all tables at once.
        shift = zlib.crc32(target.table_uri.encode()) % minutes
        newest_slot, slot_before = ((commits[at]["timestamp"] // 60_000 + shift) // minutes for at in (0, -1))
        return bool(newest_slot != slot_before)

    def _differs(self, configuration: Mapping[str, str | None]) -> bool:
        return any(configuration.get(name) != value for name, value in self.properties.items())


def _small_files(target: DeltaTable) -> int:
    sizes = pa.table(target.get_add_actions(flatten=True)).column("size_bytes")
    return int(pc.sum(pc.less(sizes, FILE_BYTES // 2), min_count=0).as_py())
