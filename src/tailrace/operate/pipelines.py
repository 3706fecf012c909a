"""The pipelines of a process as those see them who serve them by HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tailrace.errors import TailraceError
from tailrace.operate.server import Refusal
from tailrace.operate.steering import Steering
from tailrace.operate.watch import Figures, RunWatch
from tailrace.override import override


class Pipelines(Protocol):
    """What can be asked of the pipelines of this process, and done to them."""

    def figures(self) -> Sequence[Figures]:
        """The figures of each, by name."""

    def broken(self) -> Mapping[str, TailraceError]:
        """Files that hold no pipeline that can be run, by their names, with what is wrong."""
        return {}

    def file(self, name: str) -> Path | None:
        """The file that describes a pipeline, None if there is none."""
        return None

    def steering(self, name: str) -> Steering:
        """What pauses, resumes and restarts a pipeline. Raises Refusal if there is none of that name."""


class SinglePipeline(Pipelines):
    """The one pipeline of `tailrace run FILE`."""

    def __init__(self, watch: RunWatch, steering: Steering, file: Path | None = None) -> None:
        self._watch, self._steering, self._file = watch, steering, file

    @override
    def figures(self) -> Sequence[Figures]:
        return [self._watch.figures()]

    @override
    def file(self, name: str) -> Path | None:
        return self._file

    @override
    def steering(self, name: str) -> Steering:
        if name != self._watch.definition.name:
            raise Refusal(404, f"there is no pipeline {name}")
        return self._steering
