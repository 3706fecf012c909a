"""`tailrace reconcile`: compares a replica with its source while the pipeline runs, and repairs it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tailrace.cli.terminal import UNDECIDED, notes, print_json, results

if TYPE_CHECKING:
    from tailrace.pipeline.reconcile import TableReport

_COLORS = {"equal": "green", "different": "red", "undecided": "yellow", "not compared": "yellow"}
_COUNTED = ("missing", "surplus", "different", "undecided", "unread", "repaired")


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="A table, schema.table; may be repeated. Default: all tables."),
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Let the pipeline read the wrong rows again.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, help="Seconds to wait for the pipeline, each time.")
    ] = 60.0,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Compare a replica with its source. It compares row by row where they differ, and the pipeline may run."""
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.reconcile import Reconciler
    from tailrace.pipeline.repair import repair as repair_differences

    reconciler = Reconciler(load(pipeline), timeout)
    reports: list[TableReport] = []
    with notes.status("Looking at the database") as doing:
        for table in reconciler.tables(tables or []):
            doing.update(f"Comparing {escape(str(table))}")
            found = reconciler.compare(table)
            if repair:
                doing.update(f"Repairing {escape(str(table))}")
                found = repair_differences(reconciler, found)
            reports.append(found.report)
    if json:
        print_json({"tables": [asdict(report) for report in reports]})
    else:
        tell(reports, repaired=repair)
    raise typer.Exit(code(reports))


def code(reports: list[TableReport]) -> int:
    """1 if a table differs; 3 if none does for certain but not everything is decided; else 0."""
    outcomes = {report.outcome for report in reports}
    if "different" in outcomes:
        return 1
    return UNDECIDED if outcomes - {"equal"} else 0


def tell(reports: list[TableReport], *, repaired: bool) -> None:
    """The reports for people."""
    for report in reports:
        results.print(table(report))
    if not repaired and any(report.outcome == "different" for report in reports):
        results.print("With --repair the running pipeline reads the wrong rows again.")


def table(report: TableReport) -> Table:
    """One table's report."""
    grid = Table.grid(padding=(0, 2))
    color = _COLORS[report.outcome]
    outcome = f"[{color}]{report.outcome}[/]"
    if report.outcome == "equal" and not report.reason and not any(getattr(report, name) for name in _COUNTED):
        outcome += "" if report.source_rows is None else f"  {report.source_rows:,} rows"
        grid.add_row(f"[bold]{escape(report.table)}[/]", outcome)
        return grid
    grid.add_row(f"[bold]{escape(report.table)}[/]", outcome)
    if report.reason:
        grid.add_row("", escape(report.reason))
    if report.source_rows is not None and report.target_rows is not None:
        grid.add_row("  rows", f"{report.source_rows:,} in the source, {report.target_rows:,} in the replica")
        grid.add_row("  ranges", f"{report.ranges:,} compared, {report.ranges_different:,} looked at row by row")
    for name in _COUNTED:
        count = getattr(report, name)
        if count:
            first = "; ".join(_named(key) for key in report.keys.get(name, []))
            grid.add_row(f"  {name}", escape(f"{count:,}" + (f": {first}" if first else "")))
    return grid


def _named(key: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items())
