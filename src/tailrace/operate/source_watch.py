"""Asks the checkpoint and the server of a pipeline again and again, in a thread, and remembers the newest answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tailrace.capture.lag import Lag
from tailrace.connectors.finding import Finding
from tailrace.errors import TailraceError
from tailrace.operate.status import (
    ANSWER_SECONDS,
    CONNECTION,
    ReplicaTable,
    SourceLook,
    replica_tables,
    source_look,
    unanswered,
    unasked,
)
from tailrace.pipeline.aside import set_aside
from tailrace.pipeline.checkpoint import CheckpointBatch, CheckpointState, SparkAloneError
from tailrace.pipeline.complete import Completeness, stored
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.query_id import position_of
from tailrace.sinks.replica.aside import SetAside

if TYPE_CHECKING:
    from tailrace.connectors.ports import Position as LogPosition

log = logging.getLogger(__name__)

# A database that is away is reported within 10 seconds: a pause, and a look that does not end (ANSWER_SECONDS).
PAUSE_SECONDS = 3.0
# What the server would not send is asked for less often: of 1,000 tables that takes it a tenth of a second.
PROBLEMS_SECONDS = 6.0
# Of a server that is slow to answer, a pause is so many times as long as an answer.
_TIMES, _LONGEST_PAUSE_SECONDS = 3.0, 30.0
_NOTHING = SourceLook(CheckpointState(None, None), None, None, None, None, ())


@dataclass(frozen=True)
class SourceAnswer:
    """What was said last, `at` (seconds since 1970; None: nothing yet).

    `caught_up`: when the log last ended where the pipeline has written to, `planned_up` where it has planned to; None
    if that is not known. `set_aside` and `replica` are tables of a replica. `complete` is what is in the sink.
    """

    source: SourceLook = _NOTHING
    at: float | None = None
    caught_up: float | None = None
    planned_up: float | None = None
    set_aside: tuple[SetAside, ...] = ()
    replica: tuple[ReplicaTable, ...] = ()
    complete: Completeness = field(default_factory=Completeness)


class SourceWatch:
    """Asks until it is closed; `progress` gives what the run has said last."""

    def __init__(self, definition: Definition, progress: Callable[[], RunProgress | None]) -> None:
        self._definition, self._progress = definition, progress
        self._closed = threading.Event()
        self._answer = SourceAnswer()
        self._since: float | None = None
        self._problems_at = -PROBLEMS_SECONDS
        self._written, self._read = _Follower(), _Follower()
        threading.Thread(target=self._watch, name=f"watch {definition.name}", daemon=True).start()

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()

    @property
    def answer(self) -> SourceAnswer:
        """The newest answer. Where the next one has been due for too long, the server is away."""
        since, answer = self._since, self._answer
        if since is None or time.monotonic() - since < ANSWER_SECONDS:
            return answer
        problem = Finding(CONNECTION, False, *unanswered(time.monotonic() - since))
        return replace(answer, source=replace(answer.source, server=None, problems=(problem,)))

    def _watch(self) -> None:
        pause = 0.0
        while not self._closed.wait(pause):
            begun = self._since = time.monotonic()
            try:
                self._answer = self._asked_all()
            except Exception as error:  # the thread continues, and the next look reports it
                log.exception("checkpoint and server of %s cannot be asked", self._definition.name)
                what = f"checkpoint and server cannot be asked: {type(error).__name__}"
                problem = Finding(CONNECTION, False, what, "see this process's log")
                source = replace(self._answer.source, server=None, problems=(problem,))
                self._answer = replace(self._answer, source=source)
            finally:
                self._since = None
            pause = min(max(PAUSE_SECONDS, _TIMES * (time.monotonic() - begun)), _LONGEST_PAUSE_SECONDS)

    def _asked_all(self) -> SourceAnswer:
        source = self._asked()
        # The server has answered; the sink, which may be slow, is another matter.
        self._answer = replace(self._answer, source=source)
        self._since = None
        complete = self._complete()
        aside, replica = self._tables(complete)
        end = None if source.server is None else source.server.log_end
        done, planned = (offset or {} for offset in source.position.offsets)
        ups = self._written.see(done, source.reached, end), self._read.see(planned, source.planned, end)
        return SourceAnswer(source, time.time(), *ups, aside, replica, complete)

    def _complete(self) -> Completeness:
        """What the checkpoint says; that of before if it cannot be read now."""
        try:
            return stored(self._definition.checkpoint)
        except TailraceError as error:
            log.warning("%s", error)
            return self._answer.complete

    def _asked(self) -> SourceLook:
        """What they say. Whether the pipeline could resume is not asked: it runs, or has ended by the error of that."""
        before, now = self._answer.source, time.monotonic()
        is_known = before.server is not None and now - self._problems_at < PROBLEMS_SECONDS
        problems = before.problems if is_known else None
        if problems is None:
            self._problems_at = now
        try:
            return source_look(self._definition, self._position(), problems, compares=False)
        except TailraceError as error:
            return replace(before, server=None, problems=(unasked(error),))

    def _position(self) -> CheckpointState:
        """The position in the checkpoint; that of the run where Spark alone can read the checkpoint."""
        try:
            return position_of(self._definition)
        except SparkAloneError:
            progress = self._progress()
            done = (
                None if progress is None or progress.batch is None else CheckpointBatch(progress.batch, progress.offset)
            )
            return CheckpointState(done, done)

    def _tables(self, complete: Completeness) -> tuple[tuple[SetAside, ...], tuple[ReplicaTable, ...]]:
        """The tables of a replica that somebody has to look at; those of before if they cannot be read now."""
        progress = self._progress()
        try:
            aside = set_aside(self._definition) if progress is None or progress.set_aside else ()
            return aside, replica_tables(self._definition, complete)
        except TailraceError:  # the sink is away, which the run says itself
            return self._answer.set_aside, self._answer.replica


class _Follower:
    """Remembers where the log ended at the looks, for one place that follows it."""

    def __init__(self) -> None:
        self._lag: Lag | None = None
        self.caught_up: float | None = None

    def see(self, offset: Mapping[str, Any], reached: LogPosition | None, end: LogPosition | None) -> float | None:
        """When the log last ended at `reached`; that of before if it is not known now. `end` is where it ends."""
        if reached is None or end is None:
            return self.caught_up
        now = time.time()
        if self._lag is None:
            self._lag = Lag()
            self._lag.look(now if offset.get("ts_us") is None else offset["ts_us"] / 1e6, reached)
        self._lag.look(now, end)
        self.caught_up = now - self._lag.seconds(now, reached)
        return self.caught_up
