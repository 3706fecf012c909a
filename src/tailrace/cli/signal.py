"""`tailrace signal`: sends a signal to a pipeline, running or not, most often a request for a snapshot."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace.cli.terminal import print_json, results


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    type_: Annotated[
        str,
        typer.Argument(
            metavar="TYPE",
            help="execute-snapshot, stop-snapshot, pause-snapshot, resume-snapshot, log, or an action of your own.",
        ),
    ],
    collections: Annotated[
        list[str] | None,
        typer.Option("--data-collections", "-t", help="A table, schema.table or an expression; may be repeated."),
    ] = None,
    kind: Annotated[str | None, typer.Option("--type", help="Type of snapshot: incremental or blocking.")] = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Condition in SQL on the rows; with blocking a whole SELECT.")
    ] = None,
    surrogate: Annotated[
        str | None, typer.Option("--surrogate-key", help="Column to read chunks by, instead of the key.")
    ] = None,
    data: Annotated[
        str, typer.Option("--data", help="The signal's data, or further fields of it, as a JSON object.")
    ] = "{}",
    id_: Annotated[str | None, typer.Option("--id", help="Id of the signal. Default: a random one.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was sent as one line of JSON.")] = False,
) -> None:
    """Send a signal. A running pipeline takes it within signal.poll.interval.ms, a stopped one at its next start."""
    from tailrace.operate.signal_content import content, refuse_unknown
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.signaling import send

    wanted = content(type_, data, collections or [], kind, filter_, surrogate)
    if type_ == "execute-snapshot":
        refuse_unknown(load(pipeline), wanted["data-collections"])
    sent = send(pipeline, type_, wanted, id_)
    if json:
        print_json(asdict(sent))
        return
    results.print(f"Signal [bold]{escape(sent.id)}[/] ({escape(type_)}) is sent: {escape(sent.file)}")
    results.print(f"It is carried out {sent.taken}.")
