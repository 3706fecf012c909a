"""Looks for tables of a running replica that the source has no longer, or that are not captured any more."""

from __future__ import annotations

import time
from contextlib import suppress

from tailrace.errors import TailraceError
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.sink_check import captured_now
from tailrace.pipeline.target import ReplicaOutput
from tailrace.sinks.replica.states import GONE

_PAUSE_SECONDS = 10.0  # guessed


class TableLook:
    """Compares once a run has caught up, and again when a table was written that was not there at the last time.

    Such a table may have come and gone between two looks of the planner, which then never tells that it is gone.
    """

    def __init__(self, definition: Definition, target: ReplicaOutput) -> None:
        self._definition, self._target = definition, target
        self._compared: set[str] | None = None
        self._next = 0.0

    def look(self, query: str) -> None:
        """Note which tables are captured no longer; `query` is the id of the query that writes the replica."""
        states = self._target.states
        before = states.tables
        present = {name for name, state in before.items() if state.state != GONE}
        is_same = self._compared is not None and present <= self._compared
        if is_same or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PAUSE_SECONDS
        with suppress(TailraceError):  # what is away is asked again; the query says so
            captured = [table.unique for table in captured_now(self._definition)]
            # The answer is older than what was written meanwhile.
            newer = states.tables.keys() - before.keys()
            states.captured([*captured, *newer], self._target.others(query, captured))
            self._compared = present.intersection(captured)
