"""`tailrace offset`: prints a stopped pipeline's position as Debezium's offset, so that Debezium continues there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace.cli.terminal import notes, print_json


def command(pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")]) -> None:
    """Print a stopped pipeline's position as Debezium's offset."""
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.handover import debezium_offsets

    offsets, unfinished = debezium_offsets(load(pipeline))
    for table in unfinished:
        notes.print(f"[yellow]Warning[/] {escape(table)} is not read to its end; Debezium does not continue that")
    print_json(offsets)
