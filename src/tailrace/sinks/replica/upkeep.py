"""Keeps a replica's table small: joins small files, deletes files and commits of versions that are old enough.

It runs right after a micro-batch has written the table, in the task that wrote it, so that it never meets another
write. Why these numbers: docs/decisions/0017-replicas-are-maintained.md.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from tailrace.sinks.replica.failures import is_failure
from tailrace.sinks.replica.marks import newest
from tailrace.sinks.replica.retention import FILE_BYTES, LONGEST_SECONDS, Space
from tailrace.sinks.replica.table import Maintenance, Mark, Table
from tailrace.sinks.replica.target import Target
from tailrace.spark import failpoint

# So many files of less than half of FILE_BYTES are joined. They are counted every few commits.
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
    def kept_seconds(self) -> int:
        """For how long a new table keeps replaced versions."""
        return self._fixed or LONGEST_SECONDS

    @property
    def _fixed(self) -> int | None:
        return None if self.retention_minutes is None else self.retention_minutes * 60

    def after(self, place: Target, query: str, first: int) -> str | None:
        """Do what is due once a micro-batch has written a table, in commits from `first` on; what failed, if anything.

        The replica is right without it, so a failure does not stop the pipeline.
        """
        try:
            target = place.open()
            if target is not None:
                self._after(target, query, first)
        except BaseException as error:  # whatever Arrow, the format's library and the storage raise
            if not is_failure(error):
                raise
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            what = "old files could not be removed or joined, which is tried again later"
            return f"{place.table} in {place.root}: {what}: {text}"
        return None

    def _after(self, target: Table, query: str, first: int) -> None:
        files = target.maintenance()
        seconds = self._fixed or files.kept_seconds or LONGEST_SECONDS
        is_due = _passed(target, first, seconds)
        is_counted = (first - 1) // _COMMITS != target.version // _COMMITS
        space = None
        if self._fixed is None and (is_due or is_counted or len(files.live) <= _FEW_FILES):
            space = Space(sum(files.live.values()), files.others())
        is_full = files.is_crowded or (space is not None and space.is_over())
        if not (is_due or is_counted or is_full):
            return
        work = _Work(target, query)
        if is_due:
            work.keep(seconds)
        if files.small(FILE_BYTES // 2) >= _SMALL_FILES:
            files.join(FILE_BYTES, work.mark)
        failpoint.reach("in-upkeep")
        if is_due or is_full:
            work.remove(seconds, space)


@dataclass(frozen=True)
class _Work:
    """Maintenance of one table."""

    target: Table
    query: str

    @cached_property
    def mark(self) -> Mark:
        """The mark of its commits, which bring no changes: they repeat what the table holds of the query's."""
        record = newest(self.target, self.query)
        return Mark(None, -1, "{}" if record is None else record.to_text(is_repeated=True))

    @property
    def files(self) -> Maintenance:
        """The files as they are now."""
        return self.target.maintenance()

    def keep(self, seconds: int) -> None:
        self.files.keep(seconds, self.mark)

    def remove(self, seconds: int, space: Space | None) -> None:
        """Remove what is old enough. With `space` the retention is shorter while too much is left, and then longer."""
        removed = self.files.old()
        while space is not None and space.is_over(removed) and (shorter := space.shorter(seconds)) is not None:
            seconds = shorter
            self.keep(seconds)
            removed = self.files.old()
        if removed or self.files.is_crowded:
            self.files.remove(self.mark)
        if space is not None:
            self.keep(space.longer(seconds, removed))


def _passed(target: Table, first: int, seconds: int) -> bool:
    """Whether the clock has passed a mark since the commit before: so no state is kept, nor lost by a restart."""
    times = [commit.at for commit in islice(target.commits(), target.version - first + 2)]
    period = min(max(seconds // 2, 1), _MOST_SECONDS_BETWEEN) * 1000
    # Not all tables at once.
    shift = zlib.crc32(target.uri.encode()) % period
    newest_slot, slot_before = ((times[at] + shift) // period for at in (0, -1))
    return newest_slot != slot_before
