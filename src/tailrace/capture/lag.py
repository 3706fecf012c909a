"""Measures how far a position is behind the end of the log, in seconds, for a log whose positions have no times."""

from __future__ import annotations

from typing import Any

# Beyond so many looks at the log every second one is forgotten, so that a long backlog takes little memory.
_MOST = 1024


class Looks:
    """Times with positions of the log, both ascending; those that are passed are forgotten, and some of many others."""

    def __init__(self) -> None:
        self.kept: list[tuple[float, Any]] = []
        # Of so many looks one is kept.
        self._every, self._since = 1, 0

    def add(self, time: float, position: Any) -> None:
        """Add a look."""
        self._since += 1
        if self.kept and self._since < self._every:
            return
        self.kept.append((time, position))
        self._since = 0
        if len(self.kept) > _MOST:
            self.kept, self._every = self.kept[::2], 2 * self._every

    def passed(self, reached: Any) -> float | None:
        """The time of the last look that `reached` has reached, None for none; earlier ones are forgotten."""
        count = sum(not reached < position for _, position in self.kept)
        self.kept = self.kept[max(0, count - 1) :]
        if count and len(self.kept) == 1:
            self._every = 1
        return self.kept[0][0] if count else None


class Lag:
    """Where the log ended at several times. Positions ascend, times are in seconds since 1970."""

    def __init__(self) -> None:
        self._looks = Looks()
        self._end: Any = None

    def look(self, now: float, end: Any) -> None:
        """The log ended at a position."""
        if self._end is not None and not self._end < end:
            return
        self._end = end
        self._looks.add(now, end)

    def seconds(self, now: float, reached: Any) -> float:
        """How long ago the log ended at `reached` or before it; 0 if it still does.

        Earlier positions are not queried afterwards.
        """
        self._looks.passed(reached)
        if self._end is None or not reached < self._end:
            return 0.0
        return max(0.0, now - self._looks.kept[0][0])
