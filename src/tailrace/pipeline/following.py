"""How far a pipeline that runs in another process has committed, and waiting until it is far enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tailrace.config import Config
from tailrace.connectors.postgres.admin.operations import server_state
from tailrace.connectors.postgres.position import STREAM, format_lsn, parse_lsn
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.definition import Definition
from tailrace.snapshot.progress import Progress

_PAUSE_SECONDS = 0.2


class Follower:
    """Follows one pipeline by its checkpoint; `timeout` is in seconds and counts anew for each wait."""

    def __init__(self, definition: Definition, timeout: float) -> None:
        self._definition = definition
        self._config = definition.config()
        self._timeout = timeout
        self._stuck: tuple[int | None] | None = None

    @property
    def config(self) -> Config:
        """The pipeline's configuration, with the tables that were added or removed while it ran."""
        return replace(self._config, tables=self.progress.tables)

    @property
    def offset(self) -> dict[str, Any]:
        """The committed offset, empty before there is one. Raises OffsetError."""
        committed = position(self._definition.checkpoint).committed
        return {} if committed is None else committed.offset

    @property
    def progress(self) -> Progress:
        """What signals asked for and is not done."""
        return Progress.from_json(self.offset.get("snapshots"))

    def lsn(self) -> int | None:
        """The position up to which the log is in the target; None while the first snapshot is read."""
        offset = self.offset
        return parse_lsn(offset["lsn"]) if offset.get("phase") == STREAM and offset["lsn"] is not None else None

    def reaches(self, lsn: int) -> bool:
        """Wait until the log is in the target up to a position; whether it is.

        Where the time ran out once, and the pipeline has not moved since, nobody waits again.
        """
        here = self.lsn()
        if here is not None and here >= lsn:
            return True
        if self._stuck == (here,):
            return False
        reached = self.until(lambda: (found := self.lsn()) is not None and found >= lsn)
        self._stuck = None if reached else (self.lsn(),)
        return reached

    def settles(self) -> bool:
        """Wait until the micro-batch that is planned now is committed, if one is; whether it is.

        Meanwhile the target may hold a part of it: a snapshot begins by emptying a table.
        """
        planned = position(self._definition.checkpoint).planned
        if planned is None:
            return True

        def is_committed() -> bool:
            done = position(self._definition.checkpoint).committed
            return done is not None and done.number >= planned.number

        return self.until(is_committed)

    def until(self, condition: Callable[[], bool]) -> bool:
        """Wait for a condition; whether it came true in time."""
        deadline = time.monotonic() + self._timeout
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def standing(self) -> str:
        """Where the pipeline stands, in words."""
        here, server = self.lsn(), server_state(self._config)
        if here is None:
            return "the pipeline has not finished its first snapshot"
        is_read = server.slot is not None and server.slot.active
        behind = max(0, parse_lsn(server.current) - here)
        state = "lags" if is_read else "does not run (nobody reads its slot)"
        return f"the pipeline {state}: it stands at {format_lsn(here)}, {behind:,} bytes of log behind the server"
