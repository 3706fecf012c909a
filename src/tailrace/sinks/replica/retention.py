"""Decides how long a table's replaced versions are kept where no retention is set: as long as the disk space allows.

Why these numbers: docs/decisions/0017-replicas-are-maintained.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

LONGEST_SECONDS = 7200  # guessed
# A merge rewrites each file it touches: large ones cost, as many small ones do.
FILE_BYTES = 32 << 20
# Each is twice the one before: a table's properties do not change with each commit.
_STEPS = (20, 40, 80, 160, 320, 640, 1280, 2560, LONGEST_SECONDS)
# What replaced versions may take: so often what the newest one takes, or so many bytes.
_TIMES, _LEAST_BYTES = 3, 64 << 10
# A query of a large table takes longer: for so many bytes the shortest retention is a second longer.
_BYTES_A_SECOND = 10_000_000


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
