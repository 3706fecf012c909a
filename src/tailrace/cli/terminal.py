"""The output of the commands: results to stdout, notes to stderr, errors as a message with its remedy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from tailrace.errors import TailraceError

# The exit code of a command that found no error, but not that all is well. 2 is click's, for wrong usage.
UNDECIDED = 3

results = Console(highlight=False, soft_wrap=True)
notes = Console(stderr=True, highlight=False, soft_wrap=True)


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
