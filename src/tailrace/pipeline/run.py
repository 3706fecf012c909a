"""Follows a running pipeline: waits for its end, starts its query again, reports its progress, and stops it."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from tailrace.config.options.runtime import ERRORS_MAX_RETRIES
from tailrace.connectors.ports import Admin
from tailrace.errors import TailraceError
from tailrace.pipeline.activity import RESTARTS, ActivityWatch
from tailrace.pipeline.ahead import numbers
from tailrace.pipeline.batches import BatchTotals
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.lease import Lease, LeaseFile, Owner
from tailrace.pipeline.lifecycle import Lifecycle, LifecycleState
from tailrace.pipeline.lineage import lineage_of
from tailrace.pipeline.masked import masked, secrets
from tailrace.pipeline.progress import RunProgress, offset_of
from tailrace.pipeline.query import QueryStart
from tailrace.pipeline.reports import Reports
from tailrace.pipeline.restarts import ClockWatch, Restarted, Restarts, clock_set_back, is_passing
from tailrace.pipeline.run_state import caught_up, ended
from tailrace.pipeline.sink_health import SinkWatch
from tailrace.pipeline.snapshot_watch import SnapshotWatch
from tailrace.pipeline.table_look import TableLook
from tailrace.pipeline.target import ReplicaOutput
from tailrace.pipeline.watches import Watches
from tailrace.sinks.counts import Counts
from tailrace.sinks.kafka.sink import KafkaSink
from tailrace.snapshot.chunk_size import fixed_size
from tailrace.snapshot.report import Report, report

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

# How often a waiting run checks its query and the clock; Spark rejects a wait of 0 seconds.
_LOOK_SECONDS, _LEAST_SECONDS = 0.5, 0.001


class Run:
    """A pipeline that runs.

    `query` is the one that `start` has begun. The session ends with the run where `ends_session` says so.
    """

    def __init__(
        self,
        start: QueryStart,
        query: StreamingQuery,
        lease: Lease,
        last_run: LeaseFile,
        *,
        ends_session: bool,
    ) -> None:
        definition, target, session = start.definition, start.target, start.session
        config, package = definition.config(), definition.package()
        self._admin: Admin = package.admin(config)
        self._secrets = secrets(definition, config)
        self._chunk_size = fixed_size(config)
        self._start, self._definition, self._target, self._session = start, definition, target, session
        self._lease, self._last_run, self._ends_session = lease, last_run, ends_session
        self._restarts = Restarts.of(config[ERRORS_MAX_RETRIES])
        self._clock, self._activity, self._batches = ClockWatch(), ActivityWatch(), BatchTotals()
        self._sink = SinkWatch(None if start.replaces_sink else definition)
        self._registrar = target.registrar if isinstance(target, ReplicaOutput) else None
        if self._registrar is not None:
            self._registrar.start()
        self._watches = Watches(session, definition, config, target)
        self._was_set_back = 0.0
        self._restarted: Restarted | None = None
        self._tables = TableLook(definition, target) if isinstance(target, ReplicaOutput) else None
        self._life = Lifecycle(lease)
        self._watch(query)
        self._written: Counts = getattr(target, "written", Counts())
        self._counts_itself = hasattr(target, "written")
        self._lineage = lineage_of(definition)
        self._drops_at_stop = package.stop_property is not None and config[package.stop_property]

    def _watch(self, query: StreamingQuery) -> None:
        """Follow a query from here on."""
        definition, tracker = self._definition, self._session.sparkContext.statusTracker()
        self._query, self._reports = query, Reports(query, self._start.latest)
        self._first = SnapshotWatch(self._admin, definition.config(), definition.checkpoint, tracker, query)
        self._keep()

    def _keep(self) -> None:
        """Renew the lease while the query runs or waits."""
        self._lease.keep(lambda: self._life.state is LifecycleState.WAITS or self._is_active(), self._lost, self._says)

    def _says(self, owner: Owner) -> Owner:
        """What other processes are told of this run."""
        error = self._life.error
        said, remedy = (None, None) if error is None else (error.what, error.remedy)
        restarted = None if self._restarted is None else asdict(self._restarted)
        return replace(owner, caught_up=self._caught_up(), error=said, remedy=remedy, restarted=restarted)

    def await_(self, seconds: float | None = None) -> bool:
        """Waits until the pipeline ends, or the time is up; whether it has ended. Raises the error that ended it.

        A query whose error may pass is started again, see `Restarts`, and so is one after the clock was set back.
        """
        end = math.inf if seconds is None else time.monotonic() + seconds
        while not (is_over := self._looked(max(_LEAST_SECONDS, min(end - time.monotonic(), _LOOK_SECONDS)))):
            if time.monotonic() >= end:
                break
        if is_over:
            self._ended(None)
            self._at_stop(False)
        if is_over and self._lease.lost is not None:
            raise self._lease.lost
        return is_over

    def _looked(self, seconds: float) -> bool:
        """Wait for so long at most; whether the query has ended. Starts it again where that is due."""
        self._watches.see(self._last())
        if self._tables is not None and self._caught_up() is not None:
            self._tables.look(str(self._query.id))
        try:
            if self._life.state is LifecycleState.WAITS:
                return self._waited(seconds)
            if self._life.state is LifecycleState.LOST and not self._is_active():
                return True
            with self._start.sentences():
                # Fractions are taken, whatever its annotation says.
                is_over = bool(self._query.awaitTermination(seconds))  # type: ignore[arg-type]
            if not is_over:
                self._look_at_clock()
            return is_over
        except TailraceError as error:
            self._fail(error)
            return False

    def _waited(self, seconds: float) -> bool:
        """Wait for so long at most until the query is to be started again, and start it; False, as it has not ended."""
        if (notice := self._life.notice()) is not None:
            log.warning("%s", notice)
        time.sleep(min(seconds, self._life.due_seconds))
        if not self._life.due_seconds and (error := self._life.error) is not None:
            self._start_again(error)
        return False

    def _fail(self, error: TailraceError) -> None:
        """Plan a restart after an error. Raises one that does not pass."""
        may_restart = self._life.state in (LifecycleState.RUNS, LifecycleState.WAITS)
        pause = self._pause() if may_restart and is_passing(error) else None
        if pause is None:
            self._ended(error)
            raise error
        made, most = self._restarts.made, self._restarts.most
        text = f"{error}\nThe query is started again in {pause:.0f} s ({made} of {most} in a row)."
        said = masked(error, self._secrets)
        where = "" if said.where is None else f"{said.where}: "
        what = f"{where}{said.what} (restart {made} of {most} in a row)"
        self._life.waits(pause, text, TailraceError(what, remedy=said.remedy))
        self._keep()  # its thread may have met the query's end before
        self._lease.renew()

    def _pause(self) -> float | None:
        """Seconds until the next restart; None if there is none, also where the checkpoint cannot be read."""
        try:
            with self._start.sentences():
                batch_numbers = numbers(self._session, self._definition.checkpoint)
        except TailraceError as failure:
            log.warning("the query is not started again, as its checkpoint cannot be read: %s", failure)
            return None
        return self._restarts.pause(batch_numbers.planned, batch_numbers.committed)

    def _start_again(self, cause: TailraceError) -> None:
        if self._life.state not in (LifecycleState.RUNS, LifecycleState.WAITS):
            return  # another run has the checkpoint, or another thread has stopped this one, while it waited
        self._restarted = Restarted(self._restarts_made + 1, time.time(), cause.what, cause.remedy)
        self._watch(self._start.begin())
        self._life.runs()
        self._lease.renew()

    def _look_at_clock(self) -> None:
        """Start the query again if its trigger waits for a time that comes late, as the clock was set back."""
        self._was_set_back += self._clock.back_seconds()
        if not self._was_set_back:
            return
        with self._start.sentences():
            if self._query.status["isTriggerActive"]:
                return  # what it does now is finished first
            cause = clock_set_back(self._was_set_back)
            log.warning("%s", cause.line)
            self._was_set_back = 0.0
            self._query.stop()
            self._start_again(cause)

    def stop(self, *, is_pause: bool = False) -> None:
        """Stops at once and abandons unfinished work; the checkpoint stays valid, and the next start resumes from it.

        A session of the pipeline's own ends as well, and with it the worker that holds the replication connection. A
        pause loses nothing: what the package's `stop_property` asks for is not done.
        """
        try:
            with self._start.sentences():
                has_failed = self._query.exception() is not None
                self._query.stop()
            if not has_failed:
                self._ended(None)
        finally:
            self._end_threads()
            self._lease.release()
            if self._ends_session:
                with self._start.sentences():
                    self._session.stop()
        if not is_pause:
            self._at_stop(has_failed)

    def _ended(self, error: TailraceError | None) -> None:
        """Write down how the run ended, unless the checkpoint is another run's by now, and give up its lease."""
        self._life.ends()
        self._end_threads()
        error = None if error is None else masked(error, self._secrets)
        if self._lineage is not None:
            self._lineage.ended(error or self._lease.lost)
        is_written = self._lease.lost is not None
        if not is_written:
            self._watches.see(self._last(), is_last=True)
            is_written = ended(self._last_run, error, self._caught_up())
        self._lease.release()
        if not is_written:
            # The file of the lease may have been the space that a full disk lacked.
            ended(self._last_run, error, self._caught_up())

    def _end_threads(self) -> None:
        self._sink.stop()
        self._watches.stop()
        if self._registrar is not None:
            self._registrar.stop()

    def _is_active(self) -> bool:
        try:
            with self._start.sentences():
                return bool(self._query.isActive)
        except TailraceError:  # Java is no more, and nor is the query
            return False

    def _caught_up(self) -> float | None:
        """Up to when the pipeline has read everything, None if it is not known."""
        return None if (last := self._last()) is None else caught_up(last)

    def _last(self) -> dict[str, Any] | None:
        """The newest progress of the query, None without one."""
        try:
            with self._start.sentences():
                return self._reports.last if self._lease.lost is None else None
        except TailraceError:  # Java is no more
            return None

    def _lost(self) -> None:
        """Another run has taken the checkpoint over: `await_` raises the error."""
        with self._start.sentences():
            self._query.stop()

    def _at_stop(self, has_failed: bool) -> None:
        """Does what the package's `stop_property` asks for, once. A pipeline that failed needs everything again."""
        if self._drops_at_stop and not has_failed and self._lease.lost is None:
            self._admin.drop_at_stop(position(self._definition.checkpoint).offsets)
            self._drops_at_stop = False

    @property
    def _restarts_made(self) -> int:
        return 0 if self._restarted is None else self._restarted.number

    def progress(self) -> RunProgress:
        """The progress of the newest finished batches."""
        with self._start.sentences():
            new, last, status = self._reports.new(), self._reports.last or {}, self._query.status
        if not self._counts_itself:
            for batch in new:
                self._written[batch["batchId"]] = batch["numInputRows"]
        self._batches.see(new)
        offset, (activity, activity_seconds) = offset_of(last, "endOffset"), self._activity.look(status, last)
        if self._life.state is LifecycleState.WAITS:
            activity, activity_seconds = RESTARTS, self._life.due_seconds
        return RunProgress(
            batch=last.get("batchId"),
            events=self._written.total,
            batch_seconds=last.get("durationMs", {}).get("triggerExecution", 0) / 1000,
            offset=offset,
            snapshot=self._snapshot(offset),
            position=None if (position := self._admin.position(offset)) is None else position.to_text(),
            latest=offset_of(last, "latestOffset"),
            activity=activity,
            activity_seconds=activity_seconds,
            error=None if self._life.error is None else self._life.error.what,
            remedy=None if self._life.error is None else self._life.error.remedy,
            set_aside=self.set_aside,
            incomplete=self.incomplete,
            sink_problem=self._sink.problem,
            catalog=() if self._registrar is None else self._registrar.problems,
            batches=self._batches.so_far,
            restarts=self._restarts_made,
            restarted=self._restarted,
            rows=self._target.rows if isinstance(self._target, ReplicaOutput) else {},
            topics=tuple(sorted(self._target.topics)) if isinstance(self._target, KafkaSink) else (),
            caught_up=caught_up(last) if last else None,
        )

    @property
    def set_aside(self) -> tuple[str, ...]:
        """The tables of a replica that are set aside, and why."""
        return tuple(map(str, self._target.set_aside)) if isinstance(self._target, ReplicaOutput) else ()

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The tables of a replica whose rows may differ from the source's, and why."""
        return self._watches.incomplete

    def _snapshot(self, offset: dict[str, Any]) -> Report | None:
        if offset.get("phase") == "stream":
            return report(offset, self._chunk_size, time.time())
        with self._start.sentences():
            return self._first.report()
