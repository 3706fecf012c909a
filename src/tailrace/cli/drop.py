"""`tailrace drop`: removes what a pipeline left on its database: slot, publication, DDL triggers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace.cli.check import begun, config_of
from tailrace.cli.terminal import print_json, results


def command(
    pipeline: Annotated[Path, typer.Argument(help="A pipeline file, or a connector's .json or .properties alone.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also a slot that the checkpoint did not create, if nobody uses it."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="What was done as one line of JSON.")] = False,
) -> None:
    """Drop a pipeline's replication slot, publication and DDL triggers. Its checkpoint is of no use afterwards."""
    from tailrace.connectors.postgres.operations import drop

    config = config_of(pipeline)
    slot, publication = config.text("slot.name"), config.text("publication.name")
    place = f"{config.text('database.dbname')} at {config.text('database.hostname')}"
    if not yes:
        typer.confirm(f"Drop slot {slot} and publication {publication} of database {place}?", abort=True)
    done = drop(config, begun(pipeline), force=force)
    if json:
        print_json(done)
        return
    for line in done:
        results.print(escape(line))
