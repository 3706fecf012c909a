"""`tailrace reconcile`: compares a replica with its source while the pipeline runs, and repairs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tailrace.cli.terminal import UNDECIDED, notes, print_json, results

if TYPE_CHECKING:
    from tailrace.pipeline.reconcile import ReconcileReport

_COLORS = {"equal": "green", "equal in part": "green", "different": "red"}
# States of tables that are worth a word.
_STATES = ("incomplete", "reading", "aside", "gone")
_LINE_SECONDS = 5.0
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
    from tailrace.pipeline.comparing import ComparisonProgress, compare_all
    from tailrace.pipeline.definition import load

    progress, reports = ComparisonProgress(), []
    with telling(progress):
        for report in compare_all(load(pipeline), tables or [], timeout, progress, repairs=repair):
            reports.append(report)
            if not json:
                results.print(table(report))
    if json:
        print_json({"tables": [asdict(report) for report in reports]})
    else:
        advise(reports, repaired=repair)
    raise typer.Exit(code(reports))


@contextmanager
def telling(progress: object) -> Iterator[None]:
    """Show how far it is: in a terminal all the time, elsewhere a line every few seconds."""
    ended = threading.Event()

    def tell() -> None:
        begun = time.monotonic()
        while not ended.wait(1 if notes.is_terminal else _LINE_SECONDS):
            if notes.is_terminal:
                doing.update(escape(str(progress)))
            else:
                notes.print(escape(f"{progress} ({time.monotonic() - begun:.0f} s)"))

    with notes.status("Looking at the database") as doing:
        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def code(reports: list[ReconcileReport]) -> int:
    """1 if a table differs; 3 if none does for certain but not everything is decided; else 0."""
    outcomes = {report.outcome for report in reports}
    if "different" in outcomes:
        return 1
    is_lacking = any(report.is_lacking for report in reports)
    return UNDECIDED if is_lacking or outcomes - {"equal", "equal in part"} else 0


def advise(reports: list[ReconcileReport], *, repaired: bool) -> None:
    """What to do about what was found."""
    if not repaired and any(report.outcome == "different" or report.is_lacking for report in reports):
        results.print("With --repair the running pipeline reads the wrong rows again.")


def table(report: ReconcileReport) -> Table:
    """One table's report."""
    grid = Table.grid(padding=(0, 2))
    color = _COLORS.get(report.outcome, "yellow")
    outcome = f"[{color}]{report.outcome}[/]"
    if report.state in _STATES:
        outcome += f"  [yellow]{report.state}[/]"
    is_plain = report.outcome == "equal" and report.state not in _STATES and not (report.reason or report.configured)
    if is_plain and not any(getattr(report, name) for name in _COUNTED):
        outcome += "" if report.source_rows is None else f"  {report.source_rows:,} rows"
        grid.add_row(f"[bold]{escape(report.table)}[/]", outcome)
        return grid
    grid.add_row(f"[bold]{escape(report.table)}[/]", outcome)
    if report.reason:
        grid.add_row("", escape(report.reason))
    for why in report.why if report.state in _STATES else []:
        grid.add_row(f"  {report.state}", escape(why))
    for column, what in (*report.not_compared.items(), *report.configured.items()):
        grid.add_row(f"  {escape(column)}", escape(what))
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
