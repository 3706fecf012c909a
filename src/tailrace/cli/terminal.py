"""The output of the commands: results to stdout, notes to stderr, errors as a message with its remedy."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape

from tailrace.errors import TailraceError

results = Console(highlight=False, soft_wrap=True)
notes = Console(stderr=True, highlight=False, soft_wrap=True)


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
