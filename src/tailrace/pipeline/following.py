"""Reads how far a pipeline in another process has committed, and waits until it has reached a position."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tailrace.config import Config
from tailrace.connectors.ports import Admin, Position
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.query_id import position_of
from tailrace.snapshot.progress import Progress

_PAUSE_SECONDS = 0.2  # guessed


class Follower:
    """Follows one pipeline by its checkpoint; `timeout` is in seconds and applies to each wait separately.

    `waited` is for how long the pipeline was waited for, in seconds.
    """

    def __init__(self, definition: Definition, timeout: float) -> None:
        self._definition = definition
        self._config = definition.config()
        self._package = definition.package()
        self._timeout = timeout
        self.waited = 0.0
        self._stuck: tuple[Position | None] | None = None

    @property
    def config(self) -> Config:
        """The pipeline's configuration, with the tables that were added or removed while it ran."""
        return replace(self._config, tables=self.progress.tables)

    @property
    def admin(self) -> Admin:
        """The source under that configuration."""
        return self._package.admin(self.config)

    @property
    def offset(self) -> dict[str, Any]:
        """The committed offset, empty before there is one. Raises OffsetError."""
        committed = position_of(self._definition).committed
        return {} if committed is None else committed.offset

    @property
    def progress(self) -> Progress:
        """The requests of signals that are not finished."""
        return Progress.from_json(self.offset.get("snapshots"))

    def position(self) -> Position | None:
        """The position up to which the log is in the target; None while the first snapshot is read."""
        offset = self.offset
        return self._package.admin(self._config).position(offset) if offset.get("phase") == "stream" else None

    def reaches(self, goal: Position | None) -> bool:
        """Wait until the log is in the target up to a position, or (None) until the log is read; whether it is.

        After a wait that timed out there is no other one until the pipeline has moved.
        """

        def is_reached(reached: Position | None) -> bool:
            return reached is not None and (goal is None or not reached < goal)

        position = self.position()
        if is_reached(position):
            return True
        if self._stuck == (position,):
            return False
        reached = self.until(lambda: is_reached(self.position()))
        self._stuck = None if reached else (self.position(),)
        return reached

    def settles(self) -> bool:
        """Wait until the micro-batch that is planned now is committed, if one is; whether it is.

        Meanwhile the target may hold a part of it: a snapshot begins by emptying a table.
        """
        planned = position_of(self._definition).planned
        if planned is None:
            return True

        def is_committed() -> bool:
            done = position_of(self._definition).committed
            return done is not None and done.number >= planned.number

        return self.until(is_committed)

    def until(self, condition: Callable[[], bool]) -> bool:
        """Wait for a condition; whether it came true in time."""
        deadline = time.monotonic() + self._timeout
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
            self.waited += _PAUSE_SECONDS
        return True

    def position_text(self) -> str:
        """How far the pipeline is, and how far behind the server, for a message."""
        position, server = self.position(), self._package.admin(self._config).state()
        if position is None:
            return "the pipeline has not finished its first snapshot"
        state = "lags" if server.idle is None else f"does not run ({server.idle})"
        distance = server.log_end.distance(position)
        behind = f"{max(0, distance):,} bytes of log behind" if distance is not None else "behind"
        return f"the pipeline {state}: it is at {position.to_text()}, {behind} the server"
