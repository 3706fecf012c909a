"""`tailrace verify`: asks a real server what the connector relies on, and writes a report for others."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from tailrace.cli.init import secrets_of
from tailrace.cli.terminal import notes, print_error, print_json, results
from tailrace.config.dialects import from_mapping
from tailrace.connectors import registry
from tailrace.errors import ConfigError, TailraceError

if TYPE_CHECKING:
    from tailrace.connectors.ports import ConnectorPackage
    from tailrace.connectors.probe import Bench
    from tailrace.verify.run import VerifyRun
    from tailrace.verify.runner import Result

_USAGE, _INTERRUPTED = 2, 130
_COLOURS = {"as expected": "green", "differs": "red", "error": "red", "noted": "blue", "skipped": "yellow"}
# Of connectors whose server is named by properties of its own, and not by a connection string.
_SERVER, _LIMIT, _LIMIT_MS = "database.hostname", "database.query.timeout.ms", "60000"


def command(
    url: Annotated[str, typer.Argument(help=registry.url_forms())],
    schema: Annotated[
        str, typer.Option("--schema", help="The schema, or database without schemas, that is made and dropped.")
    ] = "tailrace_verify",
    out: Annotated[Path, typer.Option("--out", "-o", help="The report; the page for people is beside it.")] = Path(
        "report.json"
    ),
    read_only: Annotated[bool, typer.Option("--read-only", help="Ask only what writes nothing.")] = False,
    properties: Annotated[
        list[str] | None, typer.Option("--property", "-p", help="A property of the connector, as name=value.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Only drop what a run that was killed has left.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the report as one line of JSON as well.")] = False,
) -> None:
    """Find out what your server does, in a schema of its own. Exit code 0: as expected, 1: something differs."""
    logging.getLogger("tailrace").setLevel(max(logging.ERROR, logging.getLogger().level))
    try:
        entry = registry.of_url(url)
        package = entry.load()
        bench = _bench(package, url, schema, properties or [])
        if drop:
            return _drop(bench)
        _writable(out)
        run, report = _run(bench, entry, read_only=read_only, is_shown=not json)
        page = _written(report, out)
    except TailraceError as error:
        print_error(error)
        raise typer.Exit(_USAGE) from None
    if json:
        print_json(report)
    _print_end(run, out, page, is_shown=not json)
    raise typer.Exit(_INTERRUPTED if run.is_interrupted else 0 if run.is_as_expected else 1)


def _bench(package: ConnectorPackage, url: str, schema: str, properties: list[str]) -> Bench:
    source = package.new_source(url)
    given = dict(_named(each) for each in properties)
    # A probe that hangs is given up sooner than a query of a pipeline.
    limits = {_LIMIT: _LIMIT_MS} if _SERVER in source.properties else {}
    own = {**limits, **source.properties, **secrets_of(source), "topic.prefix": "verify", **given}
    return package.bench(package.resolve(from_mapping(own)), schema)


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError("has no value", where=f"--property {name}", remedy="write name=value")
    return name.strip(), value


def _writable(out: Path) -> None:
    """Raises ConfigError for a folder that is missing, before anything is asked."""
    if not out.parent.is_dir():
        raise ConfigError("there is no such folder", where=str(out.parent), remedy="create it, or choose another --out")


def _run(
    bench: Bench, entry: registry.ConnectorEntry, *, read_only: bool, is_shown: bool
) -> tuple[VerifyRun, dict[str, Any]]:
    from tailrace.verify.clean_up import interruptible
    from tailrace.verify.report import content
    from tailrace.verify.run import run

    def tell(result: Result) -> None:
        if is_shown:
            colour = _COLOURS[result.outcome]
            results.print(f"[{colour}]{result.outcome:<11}[/] {result.asked.name}: {escape(result.asked.question)}")

    with interruptible():
        done = run(entry, bench, read_only=read_only, tell=tell)
    return done, content(done, bench, entry.product, read_only=read_only)


def _written(report: dict[str, Any], out: Path) -> Path:
    from tailrace.verify.report import write

    return write(report, out)


def _drop(bench: Bench) -> None:
    from tailrace.verify.clean_up import clean_up

    with bench.failures.translated("the server cannot be asked"):
        bench.connect(bench.config)
    left = clean_up(bench)
    _print_left(left)
    if left:
        raise typer.Exit(1)
    results.print(f"What an earlier run made in {escape(bench.schema)} is dropped.")


def _print_left(left: list[str]) -> None:
    if left:
        notes.print("[bold red]These could not be dropped[/]. Run them as somebody who may:")
        for each in left:
            notes.print(escape(each), soft_wrap=True)


def _print_end(run: VerifyRun, out: Path, page: Path, *, is_shown: bool) -> None:
    _print_left(run.left)
    if run.is_interrupted:
        notes.print("Interrupted. What was made on the server is dropped.")
    if is_shown:
        for result in run.results:
            if result.outcome in ("differs", "error"):
                results.print(f"[red]{result.asked.name}[/]: {escape(' '.join(result.means))}")
        results.print(f"The report is in {escape(str(out))}, as a page in {escape(str(page))}.")
        results.print("It has no names, values or addresses of yours: read it, and it can be sent on.")
