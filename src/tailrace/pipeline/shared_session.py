"""One Spark for several pipelines of a process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tailrace.pipeline.definition import Definition
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.pipeline.session import is_alive, local_session

# Tasks of one pipeline do not wait until a large snapshot of another one is read.
_FAIR = {"spark.scheduler.mode": "FAIR"}


class SharedSession:
    """A local SparkSession, see `local_session`; it starts when this is made. Raises TailraceError."""

    def __init__(self, name: str, log: Path, settings: Mapping[str, object], *, rows_in_java: bool) -> None:
        self._session = local_session(name, log, {**_FAIR, **settings}, rows_in_java=rows_in_java)

    def start(self, definition: Definition) -> Run:
        """Start a pipeline, whose tasks take turns with those of the others. Raises TailraceError."""
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", definition.name)
        return Pipeline(definition, self._session).start()

    @property
    def has_ended(self) -> bool:
        """Whether the Java process is no more."""
        return not is_alive(self._session)

    def stop(self) -> None:
        """End Spark, once its pipelines are stopped."""
        if not self.has_ended:
            self._session.stop()
