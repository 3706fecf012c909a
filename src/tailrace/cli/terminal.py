"""The output of the commands: results to stdout, notes to stderr, errors as a message with its remedy."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from types import MappingProxyType
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from tailrace.errors import TailraceError
from tailrace.operate import recent
from tailrace.override import override

# How a line of this process's log looks.
LOG_FORMAT = "%(levelname)s: %(message)s"
# The exit code of a command that found no error, but not that all is well. 2 is click's, for wrong usage.
UNDECIDED = 3


def clock() -> str:
    """The time as ISO 8601, with the zone of this machine: 2026-11-27T09:19:04+01:00."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


# What the lines of this thread are about, such as its pipeline.
_ABOUT: ContextVar[Mapping[str, Any]] = ContextVar("about", default=MappingProxyType({}))
# How the first word of a note shows how serious it is.
_LEVELS = {"Warning": "warning", "Problem": "error", "Error": "error", "Remedy": "error", "Over": "info"}


def set_about(**fields: Any) -> None:
    """From here on, lines of this thread have these fields in JSON, and `pipeline` before the text otherwise."""
    _ABOUT.set({**_ABOUT.get(), **fields})


class Notes(Console):
    """Notes on stderr. After `stamp_lines` each line begins with its time, or is JSON."""

    is_stamped, is_json = False, False

    @override
    def print(self, *objects: Any, fields: Mapping[str, Any] | None = None, **options: Any) -> None:
        """As Console.print, line by line where lines are stamped; `fields` are shown in JSON alone."""
        text = " ".join(map(str, objects))
        if not self.is_stamped:
            return super().print(*objects, **options)
        line = _line(text, {**_ABOUT.get(), **(fields or {})})
        recent.add(line)
        if self.is_json:
            self.file.write(json.dumps(line) + "\n")
            return self.file.flush()
        pipeline = _ABOUT.get().get("pipeline")
        about = f"[bold]{escape(str(pipeline))}[/] " if pipeline else ""
        for part in text.splitlines():
            super().print(f"[dim]{line['time']}[/] {about}{part}", **options)


def _line(text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A note as JSON, without markup; its first word says how serious it is."""
    plain = Text.from_markup(text).plain.strip()
    first, _, rest = plain.partition(" ")
    level, message = (_LEVELS[first], rest) if first in _LEVELS else ("info", plain)
    members = {name: value for name, value in fields.items() if value is not None}
    return {"time": clock(), "level": level, "message": message, **members}


class _StampedLines(logging.Formatter):
    """Lines of the log, each with its time."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(f"{clock()} {line}" for line in super().format(record).splitlines())


class _JsonLines(logging.Formatter):
    """Messages of the log as JSON, each on one line."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        level = record.levelname.lower()
        return json.dumps({"time": clock(), "level": level, "message": text, "logger": record.name, **_ABOUT.get()})


results = Console(highlight=False, soft_wrap=True)
notes = Notes(stderr=True, highlight=False, soft_wrap=True)


def stamp_lines(*, as_json: bool = False) -> None:
    """From here on each line of notes and of this process's log has its time, or is a JSON object."""
    notes.is_stamped, notes.is_json = True, as_json
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_JsonLines() if as_json else _StampedLines(LOG_FORMAT))


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
    if notes.is_json:
        return notes.print(f"[bold red]Error[/] {escape(what)}", fields={"remedy": remedy or None})
    notes.print(f"[bold red]Error[/] {escape(what)}")
    if remedy:
        notes.print(f"  [bold]Remedy[/] {escape(remedy)}")
