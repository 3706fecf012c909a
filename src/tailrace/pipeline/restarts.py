"""Decides whether a query that failed or stalled is started again, and when.

This is the one place that knows which errors pass: a PassingError, by which a source or a sink says so, and the failure
of one of Spark's processes. All others (configuration, privileges, a lost position, a value that cannot be read) would
come again at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone

from tailrace.connectors.finding import Finding
from tailrace.errors import PassingError, TailraceError
from tailrace.pipeline.failure import told

# Texts of Spark for a Python process that did not start in time or was killed, as on a machine that is short of cores
# or memory.
_WORKER_SIGNS = (
    "Python worker failed to connect back",
    "Python worker exited unexpectedly",
    "Failed to connect to the Python worker",
    "java.io.EOFException",
    "Connection reset",
    "Broken pipe",
)
MOST, _FIRST_SECONDS, _LONGEST_SECONDS = 10, 1.0, 60.0  # guessed
# A clock is set by jumps of more than this; smaller differences delay a trigger no longer than a slow batch.
_JUMP_SECONDS = 5.0
# So long a restart is shown: most are over within seconds, before anybody has looked. Guessed.
_SHOWN_SECONDS = 600.0


def is_passing(error: TailraceError) -> bool:
    """Whether starting the query again may help, although nobody changes anything; an error of Spark's is its cause."""
    if type(error) is not TailraceError:
        return isinstance(error, PassingError)
    # Not what `error` says of Java's causes: those may be the end of a file.
    text = str(error) if error.__cause__ is None else told(error.__cause__)
    return any(sign in text for sign in _WORKER_SIGNS)


@dataclass(frozen=True)
class Restarted:
    """The newest restart of a run's query: when (seconds since 1970), why, without secrets, and what helps if it stays.

    `number` counts the restarts of the run.
    """

    number: int
    at: float
    why: str
    remedy: str | None = None


@dataclass
class Restarts:
    """Growing pauses between restarts, `most` in a row; a micro-batch that was committed meanwhile begins a new row."""

    most: int = MOST
    made: int = 0
    _committed: int = -1

    @staticmethod
    def of(retries: int) -> Restarts:
        """Those of `errors.max.retries`, of which a negative number is no limit in the reference engine."""
        return Restarts(MOST if retries < 0 else retries)

    def pause(self, planned: int, committed: int) -> float | None:
        """Seconds until the query is to be started again after an error that may pass, None if it ends the pipeline.

        `planned` and `committed` are the checkpoint's newest micro-batches, -1 for none. Before the first one an error
        is most likely one of the configuration, such as a wrong address.
        """
        if committed > self._committed:
            self._committed, self.made = committed, 0
        if planned < 0 or self.made >= self.most:
            return None
        self.made += 1
        return float(min(_FIRST_SECONDS * 2 ** (self.made - 1), _LONGEST_SECONDS))


@dataclass
class ClockWatch:
    """Detects that the clock was set back. Spark's interval trigger then waits for the time that it had planned."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    _offset: float = field(init=False)

    def __post_init__(self) -> None:
        self._offset = self.wall() - self.steady()

    def back_seconds(self) -> float:
        """By how many seconds the clock was set back since the last call; 0 for less than a few."""
        before, self._offset = self._offset, self.wall() - self.steady()
        back = before - self._offset
        return back if back > _JUMP_SECONDS else 0.0


def clock_set_back(seconds: float) -> TailraceError:
    """Why a query is started again after the clock was set back by so many seconds."""
    return TailraceError(
        f"the clock of this machine was set back by {seconds:,.0f} s, and Spark's trigger would wait as long",
        remedy="let the clock be slewed, not stepped (chrony: makestep only at the start)",
    )


def restart_warnings(restarted: Restarted | None, now: float) -> tuple[Finding, ...]:
    """A warning for a while after a restart, as what was the matter may be of use although it has passed."""
    if restarted is None or now - restarted.at > _SHOWN_SECONDS:
        return ()
    at = datetime.fromtimestamp(restarted.at, timezone.utc).strftime("%H:%M:%S")
    how_often = "once" if restarted.number == 1 else f"{restarted.number:,} times"
    what = f"the query was started again {how_often} in this run, last at {at} UTC, after: {restarted.why}"
    return (Finding("restart", None, what, restarted.remedy or "none if it does not come again; else see the log"),)
