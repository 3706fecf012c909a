"""How long a table's replaced versions are kept where no retention is set: as long as the disk space allows.

Why these numbers: docs/decisions/0017-replicas-are-maintained.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

LONGEST_SECONDS = 7200
# Each is twice the one before: a table's properties do not change with each commit.
_STEPS = (20, 40, 80, 160, 320, 640, 1280, 2560, LONGEST_SECONDS)
# What replaced versions may take: so often what the newest one takes, or so many bytes.
_TIMES, _LEAST_BYTES = 3, 64 << 10
# A query of a large table takes longer: for so many bytes the shortest retention is a second longer.
_BYTES_A_SECOND = 10_000_000
# Commits take little space, and readers that follow a table need them.
_LEAST_LOG_SECONDS = 600
_FILES_KEY, _LOG_KEY = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
_INTERVAL = re.compile(r"interval (\d+) (second|minute|hour|day)s?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


@dataclass(frozen=True)
class Space:
    """Bytes of a table's newest version, and of each other data file in its folder, by name."""

    live: int
    others: Mapping[str, int]

    def is_over(self, removed: Collection[str] = ()) -> bool:
        """Whether replaced versions take more than they may, once some files are removed."""
        return self._left(removed) > self._most

    def shorter(self, seconds: int) -> int | None:
        """The retention below another; None where versions must stay for that long."""
        least = _STEPS[0] + self.live // _BYTES_A_SECOND
        return max((step for step in _STEPS if least <= step < seconds), default=None)

    def longer(self, seconds: int, removed: Collection[str]) -> int:
        """The retention above another if twice the files that are left are allowed, else that one."""
        if self._left(removed) * 2 > self._most:
            return seconds
        return next((step for step in _STEPS if step > seconds), seconds)

    @property
    def _most(self) -> int:
        return max(_TIMES * self.live, _LEAST_BYTES)

    def _left(self, removed: Collection[str]) -> int:
        return sum(size for name, size in self.others.items() if name not in removed)


def space(target: DeltaTable, live: Mapping[str, int]) -> Space:
    """What a table takes whose newest version has the files `live`, with their bytes. Raises DeltaError and OSError."""
    files = fs.PyFileSystem(DeltaStorageHandler.from_table(target._table))
    listed = files.get_file_info(fs.FileSelector(""))
    sizes = {info.base_name: info.size for info in listed if info.type == fs.FileType.File}
    return Space(sum(live.values()), {name: size for name, size in sizes.items() if name not in live})


def properties(seconds: int) -> dict[str, str]:
    """The table properties of a retention."""
    return {_FILES_KEY: _interval(seconds), _LOG_KEY: _interval(max(seconds, _LEAST_LOG_SECONDS))}


def kept_seconds(configuration: Mapping[str, str | None]) -> int:
    """The retention that a table's properties set, `LONGEST_SECONDS` at most."""
    match = _INTERVAL.fullmatch(configuration.get(_FILES_KEY) or "")
    return LONGEST_SECONDS if match is None else min(int(match[1]) * _SECONDS[match[2]], LONGEST_SECONDS)


def _interval(seconds: int) -> str:
    return f"interval {seconds} seconds" if seconds % 60 else f"interval {seconds // 60} minutes"
