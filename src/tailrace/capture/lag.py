"""Measures how far a position is behind the end of the log, in seconds, for a log whose positions have no times."""

from __future__ import annotations

from typing import Any

# Beyond so many looks at the log every second one is forgotten, so that a long backlog takes little memory.
_MOST = 1024


class Lag:
    """Where the log ended at several times. Positions ascend, times are in seconds since 1970."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, Any]] = []
        self._end: Any = None
        # Of so many looks one is kept.
        self._every, self._since = 1, 0

    def look(self, now: float, end: Any) -> None:
        """The log ended at a position."""
        if self._end is not None and not self._end < end:
            return
        self._end = end
        self._since += 1
        if self._looks and self._since < self._every:
            return
        self._looks.append((now, end))
        self._since = 0
        if len(self._looks) > _MOST:
            self._looks, self._every = self._looks[::2], 2 * self._every

    def seconds(self, now: float, here: Any) -> float:
        """How long ago the log ended at `here` or before it; 0 if it still does.

        Earlier positions are not queried afterwards.
        """
        if self._end is None or not here < self._end:
            self._looks, self._every = self._looks[-1:], 1
            return 0.0
        passed = sum(not here < end for _, end in self._looks)
        self._looks = self._looks[max(0, passed - 1) :]
        return max(0.0, now - self._looks[0][0])
