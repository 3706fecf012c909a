"""`tailrace add`: captures more tables, while the pipeline runs or before its next start."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from tailrace.cli.terminal import notes, print_json, results

if TYPE_CHECKING:
    from tailrace.pipeline.tables import TablesChange


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    tables: Annotated[list[str], typer.Argument(help="Tables, as schema.table.")],
    snapshot: Annotated[
        Literal["incremental", "blocking", "none"],
        typer.Option(help="How existing rows are read: while changes continue, while they wait, or not at all."),
    ] = "incremental",
    json: Annotated[bool, typer.Option("--json", help="Print what was done as one line of JSON.")] = False,
) -> None:
    """Add tables to a pipeline. This changes its source, its file and, by a signal, the running process."""
    from tailrace.pipeline.tables import add

    with notes.status("Looking at the database"):
        change = add(pipeline, tables, snapshot)
    tell(change, "added", json)


def tell(change: TablesChange, done: str, as_json: bool) -> None:
    """Print what was done, and what is left to do by hand."""
    if as_json:
        print_json(asdict(change))
        return
    for name in change.published:
        results.print(escape(f"{name} is {done} to {change.published_in}"))
    edit = change.edit
    if edit is not None and edit.written:
        results.print(f"{escape(edit.file)}: {edit.property} is changed")
    elif edit is not None:
        results.print(
            f"[yellow]{escape(edit.file)} cannot be changed safely.[/] The checkpoint remembers what is {done};"
        )
        wanted = f"{edit.property}: {edit.value}" if edit.value else "filters that say the same"
        results.print(f"a new checkpoint needs this in the file: {escape(wanted)}")
    if change.signal is None:
        results.print("The pipeline has not started yet: its first start reads the file.")
    else:
        named = escape(", ".join(change.tables))
        results.print(f"Signal [bold]{escape(change.signal.id)}[/] is sent: {named} will be {done}")
        results.print(f"{change.signal.taken}.")
