"""Gathers the figures of one pipeline of this process: what its run, its checkpoint and its server say.

Metrics, health checks, the console and the REST interface read these figures alone. They are values: nothing waits for
Java, the database or the sink when they are read.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timezone

from tailrace.config import Config
from tailrace.connectors.finding import catalog_warnings
from tailrace.connectors.offset import SNAPSHOT, STREAM
from tailrace.errors import TailraceError
from tailrace.operate.source_watch import SourceAnswer, SourceWatch
from tailrace.operate.spread import Spread
from tailrace.operate.status import Live, Status, status_of
from tailrace.pipeline.complete import clock_warnings
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.masked import masked, secrets
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.restarts import restart_warnings
from tailrace.pipeline.run_state import Ended, RunState, State
from tailrace.pipeline.sink_health import sink_finding
from tailrace.snapshot.report import INITIAL

# A start that takes longer hangs.
START_SECONDS = 600.0


@dataclass(frozen=True)
class RunTotals:
    """Sums over all runs of a pipeline in this process; `seconds` of micro-batches by stage, `rows` by table.

    `counts` are those of Batches, `topics` those that were written to.
    """

    events: int = 0
    batches: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    restarts: int = 0
    _: KW_ONLY
    rows: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()

    def plus(self, run: RunProgress | None) -> RunTotals:
        """With what one run has done so far."""
        if run is None:
            return self
        return RunTotals(
            self.events + run.events,
            self.batches + run.batches.count,
            Counter(self.seconds) + Counter(run.batches.seconds),
            self.restarts + run.restarts,
            rows=Counter(self.rows) + Counter(run.rows),
            counts=_sums(self.counts, run.batches.counts),
            topics=self.topics.union(run.topics),
        )


def _sums(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """With zeros, which a Counter would leave out."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}


@dataclass(frozen=True)
class Figures:
    """The figures of one pipeline at one moment, `at`. Times are in seconds since 1970.

    `events_at`: when events were written last, None before the first. `looked_at`: when checkpoint and server had
    answered last. `starts`: how often this process has started the pipeline. `snapshot_seconds`: how long its first
    snapshot has taken or takes, as far as this process has seen it. `read_bytes` and `read_seconds` are how far the
    end of the log is beyond what is planned to be read, None if that is not known; those of the status count what is
    written. `behind` is how the seconds behind the source have spread, `paused_seconds` how long snapshots were paused,
    and `scanned` how many rows of a table snapshots have read, as far as this process has seen it.
    """

    definition: Definition
    config: Config
    status: Status
    totals: RunTotals
    at: float
    events_at: float | None
    looked_at: float | None
    starts: int
    snapshot_seconds: float
    read_bytes: int | None
    read_seconds: float | None
    behind: Spread = field(default_factory=Spread)
    paused_seconds: float = 0.0
    scanned: Mapping[str, int] = field(default_factory=dict)

    @property
    def progress(self) -> RunProgress | None:
        """The newest progress of the run."""
        return None if self.status.live is None else self.status.live.progress


class RunWatch:
    """Watches one pipeline of this process. All methods may be called by several threads."""

    def __init__(self, definition: Definition) -> None:
        self.definition, self._config = definition, definition.config()
        self._secrets = secrets(definition, self._config)
        self._lock = threading.Lock()
        self._state: State = "never started"
        self._last: Ended | None = None
        self._is_paused = False
        self._progress: RunProgress | None = None
        self._said_at = time.monotonic()
        self._before, self._starts = RunTotals(), 0
        self._events_at: float | None = None
        self._snapshot_since: float | None = None
        self._snapshot_seconds = self._paused_seconds = 0.0
        self._behind = Spread()
        self._scanned: Mapping[str, int] = {}
        self._source = SourceWatch(definition, lambda: self._progress)

    def close(self) -> None:
        """Ask no more."""
        self._source.close()

    def starting(self) -> None:
        """The pipeline is being started."""
        with self._lock:
            self._before = self._before.plus(self._progress)
            # One that has failed stays so until it runs: it may fail again and again, and an alert should see that.
            if self._state != "failed":
                self._state, self._last = "running", None
            self._is_paused, self._progress = False, None
            self._starts += 1
            self._said_at = time.monotonic()

    def said(self, progress: RunProgress) -> None:
        """The run has said how far it is."""
        now, answer = time.monotonic(), self._source.answer
        with self._lock:
            before = 0 if self._progress is None else self._progress.events
            if progress.events > before:
                self._events_at = time.time()
            if progress.snapshot is not None and progress.snapshot.kind == INITIAL:
                self._snapshot_since = self._snapshot_since or now
                self._snapshot_seconds = now - self._snapshot_since
            if progress.snapshot is not None and progress.snapshot.paused:
                self._paused_seconds += now - self._said_at
            self._scanned = self._rows_scanned(progress)
            self._progress, self._said_at = progress, now
            status = self._status(answer)
            if status.phase == STREAM and status.lag_seconds is not None:
                self._behind.add(status.lag_seconds)
            if self._state == "failed" and Live(progress).has_begun:
                self._state, self._last = "running", None

    def ended(self, error: TailraceError | None = None, *, is_paused: bool = False) -> None:
        """The run has ended, by an error or in order."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        error = None if error is None else masked(error, self._secrets)
        text = None if error is None else str(error).partition("\n  Remedy: ")[0]
        with self._lock:
            self._state, self._is_paused = "stopped" if error is None else "failed", is_paused
            self._last = Ended(now, text, None if error is None else error.remedy)

    def figures(self) -> Figures:
        """The figures of this moment."""
        answer = self._source.answer
        with self._lock:
            status = self._status(answer)
            return Figures(
                self.definition,
                self._config,
                status,
                self._before.plus(self._progress),
                time.time(),
                self._events_at,
                answer.at,
                self._starts,
                self._snapshot_seconds,
                *_read(answer),
                self._behind.copy(),
                self._paused_seconds,
                self._scanned,
            )

    def _rows_scanned(self, progress: RunProgress) -> Mapping[str, int]:
        """The rows that snapshots have read by table. Of the first one a replica says it, by what it has written."""
        report, before = progress.snapshot, self._progress
        if report is not None and report.kind != INITIAL:
            return {**self._scanned, report.table: report.rows}
        is_new = before is None or before.batch != progress.batch
        if report is not None or (is_new and progress.offset.get("phase") == SNAPSHOT):
            return self._before.plus(progress).rows
        return self._scanned

    def _status(self, answer: SourceAnswer) -> Status:
        progress, runs = self._progress, self._state == "running"
        said = None if progress is None else progress.caught_up
        times = [each for each in (answer.caught_up, said) if each is not None]
        run = RunState(self._state, None, self._last)
        status = status_of(
            self.definition.name, self._config, answer.source, run, time.time(), max(times, default=None)
        )
        if runs and progress is not None:
            sink = sink_finding(progress.sink_problem)
            problems = status.problems if sink is None else (*status.problems, sink)
            warned = restart_warnings(progress.restarted, time.time())
            warned = (*warned, *clock_warnings(answer.complete, time.time()))
            problems = (*problems, *catalog_warnings(progress.catalog), *warned)
            status = replace(status, problems=problems, snapshot=progress.snapshot or status.snapshot)
        silent = time.monotonic() - self._said_at - (START_SECONDS if progress is None else 0.0) if runs else 0.0
        live = Live(progress, silent, self._is_paused)
        return replace(
            status,
            live=live,
            set_aside=answer.set_aside,
            replica=answer.replica,
            complete_until=answer.complete.text(),
        )


def _read(answer: SourceAnswer) -> tuple[int | None, float | None]:
    """Bytes and seconds of log that are not planned yet."""
    planned, server = answer.source.planned, answer.source.server
    if planned is None or server is None:
        return None, None
    distance = server.log_end.distance(planned)
    up = answer.planned_up
    seconds = 0.0 if not planned < server.log_end else None if up is None else max(0.0, time.time() - up)
    return None if distance is None else max(0, distance), seconds
