"""`tailrace retry`: has tables read again that are set aside, as their replica could not take their changes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace.cli.terminal import notes, print_json, results


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    tables: Annotated[
        list[str] | None, typer.Argument(help="Tables, as schema.table. Default: all that are set aside.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was sent as one line of JSON.")] = False,
) -> None:
    """Read tables again that are set aside, once the cause is fixed. `tailrace status` lists them."""
    from tailrace.pipeline.aside import retry
    from tailrace.pipeline.definition import load

    with notes.status("Looking at the replica"):
        sent = retry(load(pipeline), tables or [])
    if json:
        print_json(None if sent is None else asdict(sent))
    elif sent is None:
        results.print("No table is set aside.")
    else:
        results.print(f"A snapshot of {escape(', '.join(sent.data['data-collections']))} is requested.")
        results.print(f"A running pipeline takes it within {sent.seconds:g} s, a stopped one when it starts.")
