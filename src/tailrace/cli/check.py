"""`tailrace check`: reports every problem of a pipeline's config, database and Kafka, each with its remedy."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from tailrace.cli.terminal import UNDECIDED, notes, print_json, results
from tailrace.connectors.finding import warnings

if TYPE_CHECKING:
    from tailrace.config import Config
    from tailrace.connectors.ports import Admin, Begun, ConnectorPackage

CONNECTOR_FILES = (".json", ".properties")


def command(
    pipeline: Annotated[Path, typer.Argument(help="A pipeline file, or a connector's .json or .properties alone.")],
    json: Annotated[bool, typer.Option("--json", help="Print the findings as one line of JSON.")] = False,
) -> None:
    """Check config, database and Kafka, changing nothing. Exit code 0: ready, 1: problems, 3: warnings only."""
    with notes.status("Looking at database and sink"):
        if pipeline.suffix in CONNECTOR_FILES:
            package, config = source_of(pipeline)
            findings = [*warnings(config), *package.admin(config).checks()]
        else:
            from tailrace.pipeline import preflight
            from tailrace.pipeline.definition import load

            definition = load(pipeline)
            findings = [*preflight.findings(definition), *preflight.last_run(definition)]
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            mark = {True: "[green]ok[/]     ", False: "[red]problem[/]", None: "[yellow]warning[/]"}[finding.ok]
            results.print(f"{mark} {escape(finding.name)}: {escape(finding.what)}")
            if finding.remedy and finding.ok is not True:
                results.print(f"        [bold]Remedy[/] {escape(finding.remedy)}")
    outcomes = {finding.ok for finding in findings}
    raise typer.Exit(1 if False in outcomes else UNDECIDED if None in outcomes else 0)


def admin_of(path: Path) -> Admin:
    """The source of a pipeline file, or of a connector's own file. Raises ConfigError."""
    package, config = source_of(path)
    return package.admin(config)


def source_of(path: Path) -> tuple[ConnectorPackage, Config]:
    """The connector of a file and its properties. Raises ConfigError."""
    if path.suffix in CONNECTOR_FILES:
        from tailrace.config.dialects import read
        from tailrace.connectors.registry import of_source
        from tailrace.transforms.registry import CHECKS

        properties = read(path)
        package = of_source(None, properties).load()
        return package, package.resolve(properties, CHECKS)
    from tailrace.pipeline.definition import load

    definition = load(path)
    return definition.package(), definition.config()


def begun(path: Path) -> Begun | None:
    """How far a pipeline is, None for a connector's own file. Raises ConfigError, OffsetError."""
    if path.suffix in CONNECTOR_FILES:
        return None
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.query_id import position_of

    return position_of(load(path)).offsets
