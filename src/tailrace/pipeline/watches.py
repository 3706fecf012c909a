"""Follows a run beside its query: states of tables, up to when the sink is complete, and what is verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tailrace.config import Config
from tailrace.pipeline.complete import FILE as COMPLETE_FILE
from tailrace.pipeline.complete import CompleteWatch
from tailrace.pipeline.continuous import Continuous
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.files import checkpoint_file
from tailrace.pipeline.target import ReplicaOutput, SinkTarget
from tailrace.pipeline.verified import FILE as VERIFIED_FILE
from tailrace.sinks.replica.states import COMPLETE, INCOMPLETE, TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Watches:
    """Follow one run."""

    def __init__(self, session: SparkSession, definition: Definition, config: Config, target: SinkTarget) -> None:
        self._states = target.states if isinstance(target, ReplicaOutput) else None
        self._continuous: Continuous | None = None
        settings = definition.reconcile
        if self._states is not None and settings is not None and settings.continuous:
            verified = checkpoint_file(session, definition.checkpoint, VERIFIED_FILE)
            self._continuous = Continuous(definition, verified, self._states.notify)
        publish = partial(target.publish, definition.name) if isinstance(target, ReplicaOutput) else None
        file = checkpoint_file(session, definition.checkpoint, COMPLETE_FILE)
        self._complete = CompleteWatch(file, config, self._tables, publish)

    def see(self, progress: Mapping[str, Any] | None, *, is_last: bool = False) -> None:
        """Follow the newest progress of the query; `is_last`: the run ends."""
        if self._states is not None and not is_last:
            self._states.look()
        if self._continuous is not None and progress is not None and not is_last:
            self._continuous.start()
        self._complete.see(progress, is_last=is_last)

    def stop(self) -> None:
        """End the threads."""
        if self._continuous is not None:
            self._continuous.stop()

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The tables of a replica whose rows may differ from the source's, and why."""
        lines = () if self._states is None else self._states.lines
        return lines if self._continuous is None else (*lines, *self._continuous.lines)

    def _tables(self) -> Mapping[str, TableState]:
        """The states of a replica's tables; those that differ are incomplete."""
        states = {} if self._states is None else self._states.tables
        verified = {} if self._continuous is None else self._continuous.tables
        differing = {name for name, each in verified.items() if each.differs}
        return {
            name: replace(state, state=INCOMPLETE) if name in differing and state.state == COMPLETE else state
            for name, state in states.items()
        }
