"""Finds up to which time of the server everything that was committed lies before a position of the log.

A server is asked for its clock first and for the end of its log afterwards, see Connector.committed. The clock is true
of every position at or behind that end. So nothing depends on the times that commits have in the log, which are not in
its order.
"""

from __future__ import annotations

from typing import Any

from tailrace.capture.lag import Looks
from tailrace.connectors.log_ports import Committed


class CompleteUntil:
    """What was seen of the log by one process. Times are in microseconds since 1970; they never go back."""

    def __init__(self) -> None:
        self._looks = Looks()
        self._until: int | None = None

    def look(self, committed: Committed | None) -> None:
        """Remember what a server has said; None: it does not tell."""
        if committed is None:
            return
        kept = self._looks.kept
        if kept and not kept[-1][1] < committed.position:
            # A quiet log: the same end, later. An end before that of an earlier look says nothing.
            if not committed.position < kept[-1][1]:
                kept[-1] = max(kept[-1][0], committed.before_us), committed.position
            return
        self._looks.add(committed.before_us, committed.position)

    def at(self, reached: Any) -> int | None:
        """Every transaction whose commit had returned to its client before this time lies before `reached`.

        None where no look is known that far back. Earlier positions are not queried afterwards.
        """
        passed = self._looks.passed(reached)
        if passed is not None:
            self._until = max(int(passed), self._until or int(passed))
        return self._until
