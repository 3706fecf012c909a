"""`tailrace status`: shows a pipeline's position, its lag, and what the database reports about it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from tailrace.cli.terminal import clock, notes, print_json, results
from tailrace.errors import TailraceError
from tailrace.model.quantity import counted, size
from tailrace.operate.condition import Condition
from tailrace.operate.health import health
from tailrace.operate.status import ReplicaTable, Status, look

if TYPE_CHECKING:
    from tailrace.pipeline.definition import Definition
    from tailrace.pipeline.run_state import RunState

_SECONDS = 2.0  # guessed


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again every two seconds, until Ctrl-C.")
    ] = False,
) -> None:
    """Show whether a pipeline runs, its position and its lag. Exit code 1: dead, stuck, or with tables set aside."""
    from tailrace.pipeline.definition import load

    definition = load(pipeline)
    if watch:
        return follow(definition)
    with notes.status("Looking at checkpoint and database"):
        status = look(definition)
    if json:
        print_json(status.to_json())
    else:
        results.print(table(status))
    raise typer.Exit(1 if status.is_lost else 0)


def follow(definition: Definition) -> None:
    """Show the status again and again, in place. Whether the pipeline could resume is not asked: that may read log."""
    with Live(console=results, auto_refresh=False) as live:
        while True:
            try:
                shown: Table | str = table(look(definition, compares=False))
            except TailraceError as error:
                shown = escape(str(error))
            live.update(Group(f"[dim]{clock()}, Ctrl-C ends this[/]", shown), refresh=True)
            time.sleep(_SECONDS)


def _add_run(grid: Table, status: Status, run: RunState) -> None:
    state = health(status)
    colour = "red" if state.condition.is_lost else "green" if state.condition.is_ready else "yellow"
    grid.add_row("health", f"[{colour}]{state.condition.value}[/]")
    if state.condition is Condition.RESTARTING:
        grid.add_row("why", escape(state.what))
    if state.todo:
        grid.add_row("what to do", escape(state.todo))
    shown = escape(str(run))
    grid.add_row("run", f"[red]{shown}[/]" if run.is_dead else shown)
    if run.last is not None and run.last.error is not None:
        remedy = f"; remedy: {run.last.remedy}" if run.last.remedy else ""
        grid.add_row("last error", escape(f"{run.last.error}{remedy} (at {run.last.at})"))


def table(status: Status) -> Table:
    """The status for people."""
    grid = Table.grid(padding=(0, 2))
    grid.add_row("[bold]pipeline[/]", escape(status.name))
    if status.run is not None:
        _add_run(grid, status, status.run)
    grid.add_row("phase", status.phase)
    grid.add_row("position", f"{status.position or '-'} (batch {'-' if status.batch is None else status.batch})")
    grid.add_row("server", status.current or "[red]it cannot be queried[/]")
    if status.position is not None:
        measured = None if status.lag_bytes is None else size(status.lag_bytes)
        seconds = None if status.lag_seconds is None else f"{status.lag_seconds:,.1f} s"
        grid.add_row("lag", ", ".join(filter(None, (measured, seconds))) or "unknown")
    if status.complete_until is not None:
        grid.add_row("complete up to", status.complete_until)
    for detail in status.details:
        grid.add_row(detail.label, escape(detail.text) if detail.is_fine else f"[yellow]{escape(detail.text)}[/]")
    if status.snapshot is not None:
        grid.add_row("snapshot", escape(str(status.snapshot)))
    for finding in status.problems:
        mark = "[red]problem[/]" if finding.ok is False else "[yellow]warning[/]"
        grid.add_row(mark, escape(f"{finding.what}; remedy: {finding.remedy}"))
    for aside in status.set_aside:
        stored = counted(aside.changes, "change")
        grid.add_row("[red]set aside[/]", escape(f"{aside}; {stored} stored in {aside.place}"))
    for incomplete in status.incomplete:
        grid.add_row("[yellow]incomplete[/]", escape(str(incomplete)))
    _add_tables(grid, status)
    for name, rows in status.tables.items():
        grid.add_row(escape(name), counted(rows, "row"))
    return grid


def _verified(table: ReplicaTable) -> str:
    """Up to when a table is verified, and what of it is not."""
    on = (
        f"verified up to {table.verified_up_to}, on {table.verified_on}" if table.verified_up_to else "not verified yet"
    )
    columns = [f"{name}: {why}" for name, why in (table.not_compared or {}).items()]
    shown = f"not compared: {', '.join(columns)}" if columns else None
    return "; ".join(
        filter(None, (on, f"the present pass is at {table.verified_percent} %", table.verified_why, shown))
    )


def _add_tables(grid: Table, status: Status) -> None:
    """The tables of a replica that are compared all the time, and those that are not complete."""
    for each in status.replica:
        if each.verified_percent is not None:
            grid.add_row(escape(each.table), escape(_verified(each)))
        if each.is_lacking and each.state != "aside":
            upto = f"; complete up to {each.complete_until}" if each.complete_until else ""
            said = f"{each.table} since {each.since}: {each.why}; {each.takes}{upto}"
            grid.add_row(f"[yellow]{each.state}[/]", escape(said))
        elif each.state == "gone":
            grid.add_row("gone", escape(f"{each.table} since {each.since}"))
