"""`tailrace signal`: sends a signal to a pipeline, running or not, most often a request for a snapshot."""

from __future__ import annotations

import difflib
import json as jsons
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from tailrace.cli.terminal import print_json, results
from tailrace.errors import ConfigError


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
    from tailrace.pipeline.signaling import send

    wanted = content(type_, data, collections or [], kind, filter_, surrogate)
    if type_ == "execute-snapshot":
        refuse_unknown(pipeline, wanted["data-collections"])
    sent = send(pipeline, type_, wanted, id_)
    if json:
        print_json(asdict(sent))
        return
    results.print(f"Signal [bold]{escape(sent.id)}[/] ({escape(type_)}) is sent: {escape(sent.file)}")
    results.print(f"It is carried out {sent.taken}.")


def refuse_unknown(pipeline: Path, names: list[str]) -> None:
    """Raises ConfigError for a table or expression that no captured table matches; a pipeline only warns."""
    from tailrace.config.filters import TableFilter
    from tailrace.operate.status import captured_by
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.query_id import position_of
    from tailrace.snapshot.matching import matching

    definition = load(pipeline)
    captures = TableFilter.from_config(captured_by(definition.config(), position_of(definition))).captures
    there = [table.name for table in definition.admin().overview() if captures(table.id)]
    for name, found in zip(names, matching(names, there, ignore_case=False), strict=True):
        if isinstance(found, str):
            raise ConfigError(f"is no regular expression: {found}", where=name, remedy="Correct it.")
        if not found and name.replace('"', "") not in there:
            near = difflib.get_close_matches(name, there, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            remedy = f"{hint}A table is captured by `tailrace add`; it is captured now: {', '.join(there[:10])}."
            raise ConfigError("no captured table matches", where=name, remedy=remedy)


def content(
    type_: str, data: str, collections: list[str], kind: str | None, filter_: str | None, surrogate: str | None
) -> dict[str, Any]:
    """A signal's data from the options. Raises ConfigError for what the pipeline would only warn of."""
    from tailrace.snapshot import actions
    from tailrace.snapshot.signals import BLOCKING, INCREMENTAL

    if type_ not in actions.types():
        remedy = (
            f"Take one of {', '.join(actions.types())}; a type of your own is known where its package is installed."
        )
        raise ConfigError("is no type of signal", where=type_, remedy=remedy)
    try:
        found = jsons.loads(data)
    except ValueError as error:
        raise ConfigError(f"is no JSON: {error}", where="--data") from error
    if not isinstance(found, dict):
        raise ConfigError("is no JSON object", where="--data", remedy='Write {"name": "value", ...}.')
    if collections:
        found["data-collections"] = collections
    names = found.get("data-collections") or []
    if not isinstance(names, list):
        raise ConfigError("data-collections is no list", where="--data", remedy='Write {"data-collections": ["s.t"]}.')
    if type_ == "execute-snapshot" and not names:
        raise ConfigError("names no tables", where=type_, remedy="Give --data-collections once for each.")
    if kind is not None:
        found["type"] = kind
    if str(found.get("type", INCREMENTAL)).lower() not in (INCREMENTAL, BLOCKING):
        raise ConfigError(
            "is no type of snapshot", where=str(found["type"]), remedy=f"Take {INCREMENTAL} or {BLOCKING}."
        )
    if filter_ is not None:
        found["additional-conditions"] = [{"data-collection": name, "filter": filter_} for name in names]
    if surrogate is not None:
        found["surrogate-key"] = surrogate
    return found
