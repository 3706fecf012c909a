"""Runs one pipeline of several in a thread of its own, and starts it again after a failure, with growing pauses."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from tailrace.connectors.finding import Finding
from tailrace.errors import TailraceError
from tailrace.operate.steering import Steering
from tailrace.operate.watch import RunWatch
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.preflight import before_start
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.runner import Run
from tailrace.pipeline.shared_session import SharedSession

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5  # guessed
FIRST_SECONDS, LONGEST_SECONDS = 5.0, 300.0  # guessed


class Listener(Protocol):
    """Is told what happens to a pipeline, in the thread of that pipeline."""

    def begins(self) -> None:
        """The pipeline is about to start."""

    def checked(self, findings: list[Finding]) -> None:
        """The problems and warnings that its check has found; it starts now."""

    def goes_on(self, progress: RunProgress, *, last: bool = False) -> None:
        """How far it is; `last`: it has ended."""

    def failed(self, error: TailraceError, seconds: float | None) -> None:
        """It failed and is started again after so many seconds; None: it is not."""

    def ends(self, why: str) -> None:
        """It has ended in order."""


class FleetMember:
    """One pipeline. `once`: it ends when all is read that was there at the start, and after its first failure."""

    def __init__(self, definition: Definition, session: SharedSession, listener: Listener, *, once: bool) -> None:
        self.definition, self._session, self._listener, self._once = definition, session, listener, once
        self.watch = RunWatch(definition)
        self.error: TailraceError | None = None
        self.steering = Steering()
        self._failures = self._asked = 0
        self._thread = threading.Thread(target=self._live, name=definition.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait until it has ended for good; `steering` is asked for that."""
        self._thread.join()
        self.watch.close()

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return not self._thread.is_alive()

    def _live(self) -> None:
        while self.steering.waits():
            self.error = None
            self.watch.starting()
            try:
                self._run()
            except TailraceError as error:
                self._fail(error)
            except Exception as error:  # a defect of one pipeline does not end the others
                log.exception("pipeline %s has failed by a defect", self.definition.name)
                what = f"{type(error).__name__}: {error}"
                self._fail(TailraceError(what, remedy="report it, with the traceback of the log"))
            if self._once:
                return

    def _run(self) -> None:
        """Run it until it ends or something else is wanted. Raises what ends it."""
        self._listener.begins()
        self._listener.checked(before_start(self.definition))
        run = self._session.start(self.definition)
        try:
            has_ended = self._follow(run)
        finally:
            _stop(run, is_pause=self.steering.wanted == "paused")
        lacking = (*run.set_aside, *run.incomplete)
        if self._once and has_ended and lacking:
            raise TailraceError("all that there was has been read, but\n  " + "\n  ".join(lacking))
        if has_ended:
            self.steering.ended()
        self.watch.ended(is_paused=self.steering.wanted == "paused")
        self._listener.ends("it has read everything" if has_ended else "it was stopped")

    def _follow(self, run: Run) -> bool:
        """Whether it has ended by itself."""
        while not self.steering.ends_run:
            if run.await_(_LOOK_SECONDS):
                self._say(run, last=True)
                return True
            self._say(run)
        return False

    def _say(self, run: Run, *, last: bool = False) -> None:
        progress = run.progress()
        self.watch.said(progress)
        self._listener.goes_on(progress, last=last)
        if progress.batches.count:
            self._failures = 0

    def _fail(self, error: TailraceError) -> None:
        """Remember the error, and wait for the next start."""
        self.error = error
        self.watch.ended(error)
        if self.steering.asked != self._asked:  # whoever asked has perhaps repaired it
            self._failures, self._asked = 0, self.steering.asked
        self._failures += 1
        pause = min(FIRST_SECONDS * 2 ** (self._failures - 1), LONGEST_SECONDS)
        is_again = self.steering.wanted == "running" and not self._once
        self._listener.failed(error, pause if is_again else None)
        if is_again:
            self.steering.rest(pause)


def _stop(run: Run, *, is_pause: bool) -> None:
    try:
        run.stop(is_pause=is_pause)
    except TailraceError as error:
        log.info("the pipeline ended while it was stopped: %s", error)
