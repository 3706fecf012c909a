"""`tailrace drop`: removes what a pipeline created on its database server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace.cli.check import CONNECTOR_FILES, admin_of, begun
from tailrace.cli.terminal import asking, notes, print_json, results


def command(
    pipeline: Annotated[Path, typer.Argument(help="A pipeline file, or a connector's .json or .properties alone.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Drop also a slot that the checkpoint did not create, if it is not in use."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as one line of JSON.")] = False,
) -> None:
    """Drop what a stopped pipeline created on its database server. Its checkpoint is of no use afterwards."""
    if pipeline.suffix not in CONNECTOR_FILES:
        _demand_stopped(pipeline)
    admin = admin_of(pipeline)
    owned = admin.owned()
    if owned is not None and not yes:
        with asking():
            is_meant = typer.confirm(f"Drop {owned}?")
        if not is_meant:
            notes.print("Nothing is dropped")
            raise typer.Exit(1)
    done = admin.drop(begun(pipeline), force=force)
    if json:
        print_json(done)
        return
    for line in done:
        results.print(escape(line))


def _demand_stopped(pipeline: Path) -> None:
    """Raises ConfigError for a pipeline that runs: between its reads the server does not see that it is in use."""
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.run_state import demand_stopped

    demand_stopped(load(pipeline).checkpoint, "the pipeline needs what would be dropped")
