"""The pipelines of a process as those see them who serve them by HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tailrace.errors import TailraceError
from tailrace.operate.server import Refusal
from tailrace.operate.watch import Figures, RunWatch
from tailrace.override import override


class Pipelines(Protocol):
    """What can be asked of the pipelines of this process, and done to them. Each action raises Refusal.

    `steers_runs`: they can be paused, resumed and restarted.
    """

    steers_runs: bool = True

    def figures(self) -> Sequence[Figures]:
        """The figures of each, by name."""

    def broken(self) -> Mapping[str, TailraceError]:
        """Files that hold no pipeline that can be run, by their names, with what is wrong."""
        return {}

    def file(self, name: str) -> Path | None:
        """The file that describes a pipeline, None if there is none."""
        return None

    def pause(self, name: str) -> None:
        """Stop a pipeline until it is resumed, or this process ends."""

    def stop(self, name: str) -> None:
        """The same, in the word of Kafka Connect for a connector whose offsets may be looked at."""

    def resume(self, name: str) -> None:
        """Start a pipeline that is paused or stopped."""

    def restart(self, name: str) -> None:
        """Stop a pipeline, if it runs, and start it."""


class Single(Pipelines):
    """The one pipeline of `tailrace run FILE`, whose process ends with it."""

    steers_runs = False

    def __init__(self, watch: RunWatch, file: Path | None = None) -> None:
        self._watch, self._file = watch, file

    @override
    def figures(self) -> Sequence[Figures]:
        return [self._watch.figures()]

    @override
    def file(self, name: str) -> Path | None:
        return self._file

    @override
    def pause(self, name: str) -> None:
        raise _ends_with_it()

    stop = resume = restart = pause


def _ends_with_it() -> Refusal:
    # Clients of Connect ask again for 30 seconds after a 409.
    return Refusal(
        405, "this process ends with its pipeline; run the folder of the file, `tailrace run FOLDER`, for this"
    )
