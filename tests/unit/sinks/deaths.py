"""A process that dies at any step of writing or maintaining a table; what it has done until then stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyarrow import fs
from pyiceberg.table import Table

from tailrace.sinks.replica.delta.table import Delta
from tailrace.sinks.replica.iceberg import files, maintenance, vectors
from tailrace.sinks.replica.iceberg.index import Index

# What writes: each is a step before and one after.
STEPS: tuple[tuple[type, str], ...] = (
    *((files._Writer, name) for name in ("__init__", "write", "close")),
    *((Index, name) for name in ("add", "save")),
    (Table, "_do_commit"),
    *((Delta, name) for name in ("append", "overwrite", "succeed", "merge", "merge_bag", "set_property")),
)


class Killed(BaseException):
    """The process is gone."""


class Clock:
    """Counts the steps, and ends the process at the step `at`."""

    def __init__(self, at: int) -> None:
        self.at, self.steps = at, 0

    def tick(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise Killed

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            self.tick()
            result = method(*given, **named)
            self.tick()
            return result

        return run


class _Deletes:
    """A file system that tells when it deletes a file."""

    def __init__(self, system: fs.FileSystem, clock: Clock) -> None:
        self._system, self.delete_file = system, clock.around(system.delete_file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)


@contextmanager
def killed_at(at: int) -> Iterator[Clock]:
    """Die at a step of what the block does; the clock of these steps."""
    clock = Clock(at)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, clock.around(getattr(owner, name)))
        patch.setattr(vectors, "_file", clock.around(vectors._file))
        place = maintenance.Files._place

        def watched(self: maintenance.Files, folder: str) -> tuple[Any, str]:
            system, path = place(self, folder)
            return _Deletes(system, clock), path

        patch.setattr(maintenance.Files, "_place", watched)
        yield clock
