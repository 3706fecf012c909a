"""`tailrace remove`: stops capturing tables, while the pipeline runs or before its next start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailrace.cli.add import tell
from tailrace.cli.terminal import notes


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    tables: Annotated[list[str], typer.Argument(help="Tables, as schema.table.")],
    json: Annotated[bool, typer.Option("--json", help="Print what was done as one line of JSON.")] = False,
) -> None:
    """Remove tables from a pipeline. This changes its file, its source and the running process, and not the target."""
    from tailrace.pipeline.tables import remove

    with notes.status("Looking at the database"):
        change = remove(pipeline, tables)
    tell(change, "removed", json)
