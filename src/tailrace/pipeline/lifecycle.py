"""The states of a run, and what may follow each.

| state | means | set by | followed by |
|---|---|---|---|
| runs | its query is active, or nobody has seen its end yet | the start, a restart | runs, waits, lost, ended |
| waits | its query failed and will be started again | a look that met the error | runs, waits, lost, ended |
| lost | another run has the checkpoint: nothing is stored any more | the thread of the lease | ended |
| ended | it was stopped, has read everything, or failed | `stop`, a look that met the end | ended |
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum

from tailrace.errors import TailraceError
from tailrace.pipeline.lease import Lease

# A signal to the process group ends Spark's workers shortly before it reaches this process, which then stops and must
# not log them as failed. The time is guessed.
_QUIET_SECONDS = 0.5


class LifecycleState(Enum):
    """A state of the module's table."""

    RUNS = "runs"
    WAITS = "waits"
    LOST = "lost"
    ENDED = "ended"


FOLLOWING: Mapping[LifecycleState, frozenset[LifecycleState]] = {
    LifecycleState.RUNS: frozenset(LifecycleState),
    LifecycleState.WAITS: frozenset(LifecycleState),
    LifecycleState.LOST: frozenset({LifecycleState.ENDED}),
    LifecycleState.ENDED: frozenset({LifecycleState.ENDED}),
}


class Lifecycle:
    """The state of one run, which begins with `runs`; `lease` tells by itself that the checkpoint is lost."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._state = LifecycleState.RUNS
        self._due = self._said_from = 0.0
        self._notice: str | None = None
        self.error: TailraceError | None = None

    @property
    def state(self) -> LifecycleState:
        """The state now."""
        is_lost = self._state is not LifecycleState.ENDED and self._lease.lost is not None
        return LifecycleState.LOST if is_lost else self._state

    @property
    def due_seconds(self) -> float:
        """Seconds until a run that waits is to start its query again; 0 if that is due."""
        return max(0.0, self._due - time.monotonic())

    def runs(self) -> None:
        """The query was started."""
        self._become(LifecycleState.RUNS)
        self._notice = self.error = None

    def waits(self, seconds: float, notice: str, error: TailraceError) -> None:
        """The query failed, and is to be started again after so many seconds; `notice` is to be logged.

        `error` is what it waits for, as others are told it, until it runs.
        """
        self._become(LifecycleState.WAITS)
        now, self.error = time.monotonic(), error
        self._due, self._said_from, self._notice = now + seconds, now + _QUIET_SECONDS, notice

    def ends(self) -> None:
        """The run is over."""
        self._become(LifecycleState.ENDED)

    def notice(self) -> str | None:
        """What is to be logged of the restart: once, and not at once."""
        if self._notice is None or time.monotonic() < self._said_from:
            return None
        notice, self._notice = self._notice, None
        return notice

    def _become(self, state: LifecycleState) -> None:
        # What is lost stays so, whatever becomes of the query.
        if state not in FOLLOWING[self._state]:
            raise RuntimeError(f"a run that is in the state {self._state.value} cannot get to {state.value}")
        self._state = state
