"""Runs a pipeline: builds its stream, starts it, reports its progress, and stops it."""

from __future__ import annotations

import json
import logging
import math
import tempfile
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.config.options.runtime import ERRORS_MAX_RETRIES
from tailrace.connectors.notifications import notify
from tailrace.connectors.ports import Admin
from tailrace.errors import TailraceError
from tailrace.pipeline import pace
from tailrace.pipeline.activity import RESTARTS, ActivityWatch
from tailrace.pipeline.ahead import numbers, refuse_ahead, remove_unfinished
from tailrace.pipeline.batches import BatchTotals
from tailrace.pipeline.cataloguing import registrar_of
from tailrace.pipeline.checkpoint import make_folder, position
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.failure import sentences
from tailrace.pipeline.files import checkpoint_file
from tailrace.pipeline.first_snapshot import FirstSnapshot
from tailrace.pipeline.lease import Lease, LeaseFile
from tailrace.pipeline.lineage import lineage_of
from tailrace.pipeline.progress import Progress as Progress
from tailrace.pipeline.progress import offset_of
from tailrace.pipeline.query_id import demand_id
from tailrace.pipeline.replica_states import states_of
from tailrace.pipeline.restarts import ClockWatch, Restarts, is_passing
from tailrace.pipeline.run_state import LAST_RUN, LEASE, caught_up, ended, ended_early
from tailrace.pipeline.session import local_session, refuse_unsafe, without_pace_warnings
from tailrace.pipeline.sink_health import SinkWatch
from tailrace.pipeline.table_look import TableLook
from tailrace.pipeline.target import Replica, Target, build, complete_watch
from tailrace.sinks.counts import Counts
from tailrace.sinks.files import JsonLinesSink, ParquetSink
from tailrace.snapshot.chunk_size import fixed_size
from tailrace.snapshot.report import Report, report
from tailrace.spark.observed import observe
from tailrace.spark.sessions import demand_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

# How often a waiting run checks its query and the clock; Spark rejects a wait of 0 seconds.
_LOOK_SECONDS, _LEAST_SECONDS = 0.5, 0.001


class Run:
    """A pipeline that runs."""

    def __init__(
        self,
        query: StreamingQuery,
        target: Target,
        session: SparkSession,
        pipeline: Pipeline,
        lease: Lease,
        last_run: LeaseFile,
    ) -> None:
        config = pipeline.definition.config()
        package = pipeline.definition.package()
        self._admin: Admin = package.admin(config)
        self._chunk_size = fixed_size(config)
        self._session, self._target, self._pipeline, self._lease = session, target, pipeline, lease
        self._own_session, self._last_run = None if pipeline.session else session, last_run
        self._restarts = Restarts.of(config[ERRORS_MAX_RETRIES])
        self._clock, self._activity, self._batches = ClockWatch(), ActivityWatch(), BatchTotals()
        self._sink = SinkWatch(pipeline.definition if pipeline.target is None else None)
        self._registrar = target.registrar if isinstance(target, Replica) else None
        if self._registrar is not None:
            self._registrar.start()
        self._complete = complete_watch(session, pipeline.definition, config, target)
        self._was_set_back, self._started_again = 0.0, 0
        self._tables = TableLook(pipeline.definition, target) if isinstance(target, Replica) else None
        # When the query is to be started again, in seconds of the steady clock; None while it runs.
        self._due: float | None = None
        # The restart's log line, and from when it is logged: a signal to the process group ends Spark's workers shortly
        # before it reaches this process, which then stops and must not log them as failed.
        self._notice: tuple[float, str] | None = None
        self._watch(query)
        self._written: Counts = getattr(target, "written", Counts())
        self._counts_itself = hasattr(target, "written")
        self._lineage = lineage_of(pipeline.definition)
        self._drops_at_stop = package.stop_property is not None and config[package.stop_property]

    def _watch(self, query: StreamingQuery) -> None:
        """Follow a query from here on."""
        definition, tracker = self._pipeline.definition, self._session.sparkContext.statusTracker()
        self._query = query
        self._first = FirstSnapshot(self._admin, definition.config(), definition.checkpoint, tracker, query)
        self._lease.keep(lambda: self._due is not None or self._is_active(), self._lost, self._caught_up)

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
        if isinstance(self._target, Replica):
            self._target.states.look()
        self._complete.see(self._last())
        if self._tables is not None and self._caught_up() is not None:
            self._tables.look(str(self._query.id))
        try:
            if self._due is not None:
                self._say_restart()
                if self._lease.lost is not None:
                    raise self._lease.lost
                time.sleep(max(0.0, min(seconds, self._due - time.monotonic())))
                if time.monotonic() < self._due:
                    return False
                self._start_again()
                return False
            with _sentences(self._pipeline):
                # Fractions are taken, whatever its annotation says.
                is_over = bool(self._query.awaitTermination(seconds))  # type: ignore[arg-type]
            if not is_over:
                self._look_at_clock()
            return is_over
        except TailraceError as error:
            self._fail(error)
            return False

    def _fail(self, error: TailraceError) -> None:
        """Plan a restart after an error. Raises one that does not pass."""
        pause = self._pause() if self._lease.lost is None and is_passing(error) else None
        if pause is None:
            self._ended(error)
            raise error
        made, most = self._restarts.made, self._restarts.most
        text = f"{error}\nThe query is started again in {pause:.0f} s ({made} of {most} in a row)."
        now = time.monotonic()
        self._due, self._notice = now + pause, (now + _LOOK_SECONDS, text)

    def _pause(self) -> float | None:
        """Seconds until the next restart; None if there is none, also where the checkpoint cannot be read."""
        try:
            with _sentences(self._pipeline):
                known = numbers(self._session, self._pipeline.definition.checkpoint)
        except TailraceError as failure:
            log.warning("the query is not started again, as its checkpoint cannot be read: %s", failure)
            return None
        return self._restarts.pause(known.planned, known.committed)

    def _say_restart(self) -> None:
        if self._notice is not None and time.monotonic() >= self._notice[0]:
            log.warning("%s", self._notice[1])
            self._notice = None

    def _start_again(self) -> None:
        self._started_again += 1
        self._watch(self._pipeline.begin(self._session, self._target))
        self._due = None

    def _look_at_clock(self) -> None:
        """Start the query again if its trigger waits for a time that comes late, as the clock was set back."""
        self._was_set_back += self._clock.back_seconds()
        if not self._was_set_back:
            return
        with _sentences(self._pipeline):
            if self._query.status["isTriggerActive"]:
                return  # what it does now is finished first
            log.warning(
                "the clock of this machine was set back by %.0f s, and Spark's trigger would wait as long: the query "
                "is started again. Let the clock be slewed, not stepped (chrony: makestep only at the start)",
                self._was_set_back,
            )
            self._was_set_back = 0.0
            self._query.stop()
            self._start_again()

    def stop(self) -> None:
        """Stops at once and abandons unfinished work; the checkpoint stays valid, and the next start resumes from it.

        A session of the pipeline's own ends as well, and with it the worker that holds the replication connection.
        """
        try:
            with _sentences(self._pipeline):
                has_failed = self._query.exception() is not None
                self._query.stop()
            if not has_failed:
                self._ended(None)
        finally:
            self._end_threads()
            self._lease.release()
            if self._own_session is not None:
                with _sentences(self._pipeline):
                    self._own_session.stop()
        self._at_stop(has_failed)

    def _ended(self, error: TailraceError | None) -> None:
        """Write down how the run ended, unless the checkpoint is another run's by now, and give up its lease."""
        self._end_threads()
        if self._lineage is not None:
            self._lineage.ended(error)
        if self._lease.lost is None:
            self._complete.see(self._last(), is_last=True)
            ended(self._last_run, error, self._caught_up())
        self._lease.release()

    def _end_threads(self) -> None:
        self._sink.stop()
        if self._registrar is not None:
            self._registrar.stop()

    def _is_active(self) -> bool:
        try:
            with _sentences(self._pipeline):
                return bool(self._query.isActive)
        except TailraceError:  # Java is no more, and nor is the query
            return False

    def _caught_up(self) -> float | None:
        """See Owner."""
        return None if (last := self._last()) is None else caught_up(last)

    def _last(self) -> dict[str, Any] | None:
        """The newest progress of the query, None without one."""
        try:
            with _sentences(self._pipeline):
                last = self._query.lastProgress if self._lease.lost is None else None
            return None if last is None else json.loads(last.json)
        except TailraceError:  # Java is no more
            return None

    def _lost(self) -> None:
        """Another run has taken the checkpoint over: `await_` raises the error."""
        with _sentences(self._pipeline):
            self._query.stop()

    def _at_stop(self, has_failed: bool) -> None:
        """Does what the package's `stop_property` asks for, once. A pipeline that failed needs everything again."""
        if self._drops_at_stop and not has_failed and self._lease.lost is None:
            self._admin.drop_at_stop(position(self._pipeline.definition.checkpoint).offsets)
            self._drops_at_stop = False

    def progress(self) -> Progress:
        """The progress of the newest finished batches."""
        with _sentences(self._pipeline):
            recent, status = [json.loads(each.json) for each in self._query.recentProgress], self._query.status
        if not self._counts_itself:
            for batch in recent:
                self._written[batch["batchId"]] = batch["numInputRows"]
        self._batches.see(recent)
        last = recent[-1] if recent else {}
        offset, (activity, activity_seconds) = offset_of(last, "endOffset"), self._activity.look(status, last)
        if self._due is not None:
            activity, activity_seconds = RESTARTS, max(0.0, self._due - time.monotonic())
        return Progress(
            batch=last.get("batchId"),
            events=self._written.total,
            batch_seconds=last.get("durationMs", {}).get("triggerExecution", 0) / 1000,
            offset=offset,
            snapshot=self._snapshot(offset),
            position=None if (here := self._admin.position(offset)) is None else here.to_text(),
            latest=offset_of(last, "latestOffset"),
            activity=activity,
            activity_seconds=activity_seconds,
            set_aside=self.set_aside,
            incomplete=self.incomplete,
            sink_problem=self._sink.problem,
            catalog=() if self._registrar is None else self._registrar.problems,
            batches=self._batches.so_far,
            restarts=self._started_again,
            rows=self._target.rows if isinstance(self._target, Replica) else {},
            caught_up=caught_up(last) if last else None,
        )

    @property
    def set_aside(self) -> tuple[str, ...]:
        """The tables of a replica that are set aside, and why."""
        return tuple(map(str, self._target.set_aside)) if isinstance(self._target, Replica) else ()

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The tables of a replica whose rows may differ from the source's, and why."""
        return self._target.states.lines if isinstance(self._target, Replica) else ()

    def _snapshot(self, offset: dict[str, Any]) -> Report | None:
        if offset.get("phase") == "stream":
            return report(offset, self._chunk_size, time.time())
        with _sentences(self._pipeline):
            return self._first.report()


@dataclass(frozen=True)
class Pipeline:
    """A definition, the session it runs in (without one a local one is made, and its log lies in `log`), and a target.

    A `target` from the caller replaces the definition's sink.
    """

    definition: Definition
    session: SparkSession | None = None
    target: Target | None = None

    @property
    def log(self) -> Path:
        """Where the lines of Spark and Java go when the session is our own: a file in a local checkpoint."""
        checkpoint = self.definition.checkpoint
        return Path(tempfile.gettempdir() if "://" in checkpoint else checkpoint) / f"{self.definition.name}.log"

    def start(self) -> Run:
        """Starts the stream. Raises ConfigError for a wrong config, TailraceError for what the first steps show."""
        definition, config = self.definition, self.definition.config()
        if self.session is not None:
            demand_java(self.session, "a pipeline, which looks after its checkpoint and its query,")
        session = self.session or self._local_session()
        refuse_unsafe(session)
        target = self.target or build(definition, config)
        if isinstance(target, Replica):
            tell = target.notify or (lambda notice: notify(config, [notice]))
            target.states = states_of(session, definition, config, target.target, tell)
            target.registrar = registrar_of(session, definition, target.target, target.states)
        lease = Lease(checkpoint_file(session, definition.checkpoint, LEASE))
        lease.acquire()
        last_run = checkpoint_file(session, definition.checkpoint, LAST_RUN)
        try:
            return Run(self.begin(session, target), target, session, self, lease, last_run)
        except BaseException as error:
            if isinstance(error, TailraceError):
                ended(last_run, error)
            lease.release()
            raise

    def begin(self, session: SparkSession, target: Target) -> StreamingQuery:
        """Start the query from what the checkpoint and the sink hold. Raises TailraceError."""
        checkpoint = self.definition.checkpoint
        with _sentences(self):
            known = numbers(session, checkpoint)
            if known.planned < 0:
                remove_unfinished(session, checkpoint)
            else:
                demand_id(session, self.definition)
            if isinstance(target, ParquetSink | JsonLinesSink):
                refuse_ahead(session, target.path, known.planned)
            if isinstance(target, Replica):
                target.repeated = known.repeated
            return self._query(session, target)

    def _local_session(self) -> SparkSession:
        definition = self.definition
        if "://" not in definition.checkpoint:
            make_folder(Path(definition.checkpoint))
        rows_in_java = self.target is not None or definition.rows_in_java
        try:
            session = local_session(definition.name, self.log, definition.spark, rows_in_java=rows_in_java)
        except TailraceError as error:
            ended_early(definition.checkpoint, error)
            raise
        if definition.pause_seconds:
            without_pace_warnings(session)
        return session

    def _query(self, session: SparkSession, target: Target) -> StreamingQuery:
        definition = self.definition  # this module alone knows how a query ends: the source is not told of it
        own, given = definition.package().stop_property, definition.properties()
        properties = {key: text for key, text in given.items() if not own or key.lower().replace("_", ".") != own.name}
        trigger = definition.trigger_options()
        frame = (
            session.readStream.format(definition.entry.format)
            .option("tailrace.properties", json.dumps(properties))
            .option("tailrace.steps", definition.steps_text())
            .option("tailrace.pause.seconds", definition.pause_seconds)
            .options(**pace.options(trigger))
            .option("shape", target.shape)
            .load()
        )
        # Of other shapes each row would be looked at, or does not say what it is.
        counted = observe(frame) if target.shape == "arrow" else frame
        writer = target.attach(counted).queryName(definition.name).option("checkpointLocation", definition.checkpoint)
        return pace.start(writer, trigger)


def _sentences(pipeline: Pipeline) -> AbstractContextManager[None]:
    """Turns what Spark, or the connection to its Java process, fails with in the block into a TailraceError."""
    definition = pipeline.definition
    return sentences(definition.checkpoint, str(pipeline.log), None if pipeline.target else definition.sink.path)
