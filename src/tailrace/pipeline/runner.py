"""Starts a pipeline: makes its session and its target, takes its lease, and begins its stream."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.connectors.notifications import notify
from tailrace.errors import TailraceError
from tailrace.pipeline.cataloguing import registrar_of
from tailrace.pipeline.checkpoint import make_folder
from tailrace.pipeline.complete import FILE as COMPLETE
from tailrace.pipeline.complete import begin
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.files import checkpoint_file
from tailrace.pipeline.lease import Lease
from tailrace.pipeline.progress import RunProgress as RunProgress
from tailrace.pipeline.query import QueryStart
from tailrace.pipeline.replica_states import states_of
from tailrace.pipeline.run import Run as Run
from tailrace.pipeline.run_state import LAST_RUN, LEASE, ended, ended_early
from tailrace.pipeline.scratch import scratch_folder
from tailrace.pipeline.session import is_alive, local_session, refuse_unsafe, without_pace_warnings
from tailrace.pipeline.target import ReplicaOutput, SinkTarget, build
from tailrace.spark.latest_file import LatestFile
from tailrace.spark.sessions import demand_java
from tailrace.spark.versions import TELLS_START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Pipeline:
    """A definition, the session it runs in (without one a local one is made, and its log lies in `log`), and a target.

    A `target` from the caller replaces the definition's sink.
    """

    definition: Definition
    session: SparkSession | None = None
    target: SinkTarget | None = None

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
        if isinstance(target, ReplicaOutput):
            tell = target.notify or (lambda notice: notify(config, [notice]))
            target.states = states_of(session, definition, config, target.target, tell)
            target.registrar = registrar_of(session, definition, target.target, target.states)
        lease = Lease(checkpoint_file(session, definition.checkpoint, LEASE))
        lease.acquire()
        last_run = checkpoint_file(session, definition.checkpoint, LAST_RUN)
        latest = None if TELLS_START else LatestFile(scratch_folder() / "latest.json")
        start = QueryStart(definition, session, target, self.log, replaces_sink=self.target is not None, latest=latest)
        try:
            if isinstance(target, ReplicaOutput):
                begin(
                    checkpoint_file(session, definition.checkpoint, COMPLETE), partial(target.publish, definition.name)
                )
            return Run(start, start.begin(), lease, last_run, ends_session=self.session is None)
        except BaseException as error:
            if isinstance(error, TailraceError):
                ended(last_run, error)
            lease.release()
            raise

    def with_session(self) -> Pipeline:
        """The same in a local session for several runs, one after another; `close` ends it. Raises TailraceError."""
        return replace(self, session=self._local_session())

    def close(self) -> None:
        """End the session that `with_session` has made, unless its Java process is no more."""
        if self.session is not None and is_alive(self.session):
            self.session.stop()

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
