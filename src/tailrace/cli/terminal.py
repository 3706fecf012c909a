"""The output of the commands: results to stdout, notes to stderr, errors as a message with its remedy."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from tailrace.errors import TailraceError

# How a line of this process's log looks.
LOG_FORMAT = "%(levelname)s: %(message)s"
# The exit code of a command that found no error, but not that all is well. 2 is click's, for wrong usage.
UNDECIDED = 3


def clock() -> str:
    """The time as ISO 8601, with the zone of this machine: 2026-11-27T09:19:04+01:00."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


class Notes(Console):
    """Notes on stderr. After `stamp_lines` each line begins with its time."""

    is_stamped = False

    def print(self, *objects: Any, **options: Any) -> None:
        """As Console.print, line by line where lines are stamped."""
        if not self.is_stamped:
            return super().print(*objects, **options)
        for line in " ".join(map(str, objects)).splitlines():
            super().print(f"[dim]{clock()}[/] {line}", **options)


class _StampedLines(logging.Formatter):
    """Lines of the log, each with its time."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(f"{clock()} {line}" for line in super().format(record).splitlines())


results = Console(highlight=False, soft_wrap=True)
notes = Notes(stderr=True, highlight=False, soft_wrap=True)


def stamp_lines() -> None:
    """From here on each line of notes and of this process's log has its time."""
    notes.is_stamped = True
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_StampedLines(LOG_FORMAT))


@contextmanager
def asking() -> Iterator[None]:
    """A question to a person; ends the line if Ctrl-C or the end of the input interrupts it."""
    try:
        yield
    except typer.Abort:
        notes.print()
        raise


def print_json(value: Any) -> None:
    """One line of JSON for machines."""
    results.file.write(json.dumps(value, default=str) + "\n")
    results.file.flush()


def print_error(error: TailraceError) -> None:
    """The error's message and its remedy."""
    what, _, remedy = str(error).partition("\n  Remedy: ")
    notes.print(f"[bold red]Error[/] {escape(what)}")
    if remedy:
        notes.print(f"  [bold]Remedy[/] {escape(remedy)}")
