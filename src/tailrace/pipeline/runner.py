"""Runs a pipeline: builds its stream, starts it, reports its progress, and stops it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.connectors.ports import Admin
from tailrace.errors import ConfigError, TailraceError
from tailrace.pipeline.ahead import numbers, refuse_ahead, remove_unfinished
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.failure import java_ended, sentence
from tailrace.pipeline.files import checkpoint_file
from tailrace.pipeline.first_snapshot import FirstSnapshot
from tailrace.pipeline.lease import Lease
from tailrace.pipeline.session import local_session
from tailrace.pipeline.target import Replica, Target, build
from tailrace.sinks.counts import Counts
from tailrace.sinks.files import JsonLinesSink, ParquetSink
from tailrace.snapshot.report import Report, report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


LEASE = "lease.json"


@dataclass(frozen=True)
class Progress:
    """How far a running pipeline is. `events` counts since the start of this run; `offset` is the source's newest.

    `position` is that offset's position in the log as text, None before the log is read. `snapshot` is the one that
    runs, None when there is none.
    """

    batch: int | None
    events: int
    events_per_second: float
    batch_seconds: float
    offset: dict[str, Any]
    snapshot: Report | None = None
    position: str | None = None


class Run:
    """A pipeline that runs."""

    def __init__(
        self, query: StreamingQuery, target: Target, session: SparkSession, pipeline: Pipeline, lease: Lease
    ) -> None:
        config, checkpoint = pipeline.definition.config(), pipeline.definition.checkpoint
        package = pipeline.definition.package()
        self._admin: Admin = package.admin(config)
        self._chunk_size = config.number("incremental.snapshot.chunk.size")
        self._first = FirstSnapshot(self._admin, config, checkpoint, session.sparkContext.statusTracker(), query)
        self._query = query
        self._pipeline = pipeline
        self._own_session = None if pipeline.session else session
        self._lease = lease
        lease.keep(self._is_active, self._lost)
        self._written: Counts = getattr(target, "written", Counts())
        self._counts_itself = hasattr(target, "written")
        self._drops_at_stop = package.stop_property is not None and config.flag(package.stop_property)

    def await_(self, seconds: float | None = None) -> bool:
        """Waits until the pipeline ends, or for so long; says whether it has ended. Raises what it failed of."""
        try:
            with _sentences(self._pipeline):
                if seconds is None:
                    self._query.awaitTermination()
                    ended = True
                else:
                    # Fractions are taken, whatever its annotation says.
                    ended = bool(self._query.awaitTermination(seconds))  # type: ignore[arg-type]
        except TailraceError:
            self._lease.release()
            raise
        if ended:
            self._lease.release()
            self._at_stop(False)
        if ended and self._lease.lost is not None:
            raise self._lease.lost
        return ended

    def stop(self) -> None:
        """Stops at once and abandons unfinished work; the checkpoint stays valid, and the next start resumes from it.

        A session of the pipeline's own ends as well, and with it the worker that holds the replication connection.
        """
        try:
            with _sentences(self._pipeline):
                has_failed = self._query.exception() is not None
                self._query.stop()
        finally:
            self._lease.release()
            if self._own_session is not None:
                with _sentences(self._pipeline):
                    self._own_session.stop()
        self._at_stop(has_failed)

    def _is_active(self) -> bool:
        try:
            with _sentences(self._pipeline):
                return bool(self._query.isActive)
        except TailraceError:  # Java is no more, and nor is the query
            return False

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
            recent = [json.loads(progress.json) for progress in self._query.recentProgress]
        if not self._counts_itself:
            for batch in recent:
                self._written[batch["batchId"]] = batch["numInputRows"]
        last = recent[-1] if recent else {}
        seconds = last.get("durationMs", {}).get("triggerExecution", 0) / 1000
        events = self._written[last.get("batchId", -1)]
        offset = _offset(last)
        here = self._admin.position(offset)
        return Progress(
            batch=last.get("batchId"),
            events=self._written.total,
            events_per_second=events / seconds if seconds else 0.0,
            batch_seconds=seconds,
            offset=offset,
            snapshot=self._snapshot(offset),
            position=None if here is None else here.to_text(),
        )

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
        folder = Path(tempfile.gettempdir()) if "://" in checkpoint else Path(checkpoint)
        return folder / f"{self.definition.name}.log"

    def start(self) -> Run:
        """Starts the stream. Raises ConfigError for a wrong config, TailraceError for what the first steps show."""
        definition = self.definition
        config = definition.config()
        session = self.session or self._local_session()
        refuse_unsafe(session)
        target = self.target or build(definition, config)
        lease = Lease(checkpoint_file(session, definition.checkpoint, LEASE))
        lease.acquire()
        try:
            with _sentences(self):
                known = numbers(session, definition.checkpoint)
                if known.planned < 0:
                    remove_unfinished(session, definition.checkpoint)
                if isinstance(target, ParquetSink | JsonLinesSink):
                    refuse_ahead(session, target.path, known.planned)
                if isinstance(target, Replica):
                    target.repeated = known.repeated
                return Run(self._query(session, target), target, session, self, lease)
        except BaseException:
            lease.release()
            raise

    def _local_session(self) -> SparkSession:
        definition = self.definition
        if "://" not in definition.checkpoint:
            try:
                Path(definition.checkpoint).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(
                    f"the folder {definition.checkpoint} cannot be made: {error.strerror}",
                    where="checkpoint",
                    remedy="set it to a folder this user may write, on a disk with space, with no file on the way",
                ) from error
        return local_session(definition.name, self.log, definition.spark)

    def _query(self, session: SparkSession, target: Target) -> StreamingQuery:
        definition = self.definition
        properties = _without(definition.properties(), definition.package().stop_property)
        frame = (
            session.readStream.format(definition.entry.format)
            .option("tailrace.properties", json.dumps(properties))
            .option("tailrace.steps", definition.steps_text())
            .option("tailrace.pause.seconds", definition.pause_seconds)
            .option("shape", target.shape)
            .load()
        )
        writer = target.attach(frame).queryName(definition.name).option("checkpointLocation", definition.checkpoint)
        return writer.trigger(**definition.trigger_options()).start()


def _without(properties: dict[str, str], stop_property: str | None) -> dict[str, str]:
    """The properties without the one that this module carries out, as only it knows how a query ends."""
    return {name: text for name, text in properties.items() if name.lower().replace("_", ".") != stop_property}


def refuse_unsafe(session: SparkSession) -> None:
    """Raises ConfigError for Spark settings under which a position could be acknowledged before its rows are safe."""
    if session.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
        raise ConfigError(
            "speculative execution would read the same part of the log twice at the same time",
            where="spark.speculation",
            remedy="Set spark.speculation to false.",
        )


@contextmanager
def _sentences(pipeline: Pipeline) -> Iterator[None]:
    """Turns what Spark, or the connection to its Java process, fails with in the block into a TailraceError."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    checkpoint = pipeline.definition.checkpoint
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise sentence(error, checkpoint) from error
    except (Py4JError, ConnectionError) as error:
        raise java_ended(checkpoint, str(pipeline.log)) from error


def _offset(progress: dict[str, Any]) -> dict[str, Any]:
    """The end offset of a batch; Spark gives a Python source's as JSON, as text or already read."""
    sources = progress.get("sources") or [{}]
    offset = sources[0].get("endOffset") or {}
    return json.loads(offset) if isinstance(offset, str) else offset
