"""Holds what is wanted of one pipeline of this process: that it runs, is paused, is stopped, or ends for good.

Several threads may ask; the thread that runs the pipeline follows. As in Kafka Connect a restart leaves alone what is
paused or stopped: only a resumption starts that.
"""

from __future__ import annotations

import threading
import time
from typing import Literal

Wanted = Literal["running", "paused", "stopped", "closed"]


class Steering:
    """What is wanted of one pipeline. All methods may be called by several threads."""

    def __init__(self) -> None:
        self._signal = threading.Condition()
        self._wanted: Wanted = "running"
        self._restarts = self._has_ended = False
        self._asked = 0

    @property
    def wanted(self) -> Wanted:
        """What was asked for last."""
        return self._wanted

    @property
    def asked(self) -> int:
        """How often something was asked for."""
        return self._asked

    @property
    def ends_run(self) -> bool:
        """Whether the present run is to end: something else is wanted, or it is to start again."""
        return self._wanted != "running" or self._restarts

    def want(self, wanted: Wanted) -> None:
        """Have it run, be paused, be stopped, or end for good, after which nothing else is taken."""
        with self._signal:
            if self._wanted != "closed":
                self._wanted, self._has_ended = wanted, False
            self._tell()

    def restart(self) -> None:
        """End the present run and begin another one, unless it is paused or stopped."""
        with self._signal:
            if self._wanted == "running":
                self._restarts, self._has_ended = True, False
            self._tell()

    def ended(self) -> None:
        """The run has ended by itself, and another one begins only when somebody asks for it."""
        with self._signal:
            self._has_ended = not self.ends_run

    def waits(self, seconds: float | None = None) -> bool:
        """Wait, for so long at most, until it is to run or to end for good; whether it is to run. A run may begin."""
        with self._signal:
            self._signal.wait_for(lambda: self._wanted == "closed" or self._is_due, seconds)
            is_due = self._is_due
            if is_due:
                self._restarts = False
            return is_due

    def rest(self, seconds: float) -> None:
        """Wait for so long, or until something is asked for."""
        with self._signal:
            asked, deadline = self._asked, time.monotonic() + seconds
            if not self.ends_run:
                self._signal.wait_for(lambda: self._asked != asked, deadline - time.monotonic())

    @property
    def _is_due(self) -> bool:
        return self._wanted == "running" and not self._has_ended

    def _tell(self) -> None:
        self._asked += 1
        self._signal.notify_all()
