"""`tailrace status`: shows a pipeline's position, its lag, and what the database reports about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tailrace.cli.terminal import notes, print_json, results
from tailrace.connectors.finding import SINK, Finding
from tailrace.errors import SourceError
from tailrace.model.quantity import counted, size

if TYPE_CHECKING:
    from tailrace.config import Config
    from tailrace.connectors.ports import Admin, Detail, SourceState
    from tailrace.connectors.ports import Position as LogPosition
    from tailrace.pipeline.checkpoint import Position
    from tailrace.pipeline.definition import Definition
    from tailrace.pipeline.run_state import RunState
    from tailrace.sinks.replica.aside import SetAside
    from tailrace.snapshot.incomplete import Incomplete
    from tailrace.snapshot.report import Report


@dataclass(frozen=True)
class ReplicaTable:
    """A table of a replica: its state, since when (ISO 8601), why it is not complete, and what it takes to be so."""

    table: str
    state: str
    since: str
    why: str | None
    takes: str | None
    is_lacking: bool


@dataclass(frozen=True)
class Status:
    """What the command shows. `lag_seconds`: how long ago the log ended at the position, 0 if it still does.

    `current` is where the server's log ends, None if the server cannot be queried: `problems` then says why.

    `lag_bytes` is None if the database has no such measure. `incomplete` are the tables whose snapshots were given up,
    `problems` what keeps changes from the pipeline now. `run` is whether the pipeline runs, and of what the last
    run ended; `set_aside` are the tables whose changes its replica cannot take. `details` and `fields` are what only
    this database has, for people and for `--json`.
    """

    name: str
    phase: str
    batch: int | None
    position: str | None
    current: str | None
    lag_bytes: int | None
    lag_seconds: float | None
    tables: dict[str, int]
    snapshot: Report | None = None
    incomplete: tuple[Incomplete, ...] = ()
    problems: tuple[Finding, ...] = ()
    details: tuple[Detail, ...] = ()
    run: RunState | None = None
    set_aside: tuple[SetAside, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    replica: tuple[ReplicaTable, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether the pipeline does not run although nobody stopped it, cannot go on, or lacks a table."""
        is_dead = self.run is not None and self.run.is_dead
        # A run waits for a server or a sink that is away, so it is not stuck.
        runs = self.run is not None and self.run.state == "running"
        errors = [finding for finding in self.problems if finding.ok is False and not (runs and finding.name == SINK)]
        is_stuck = bool(errors) and not (runs and self.current is None)
        is_lacking = bool(self.set_aside) or any(each.is_lacking for each in self.replica)
        return is_dead or is_lacking or is_stuck

    def to_json(self) -> dict[str, Any]:
        """For `--json`: the database's own fields are on the same level as the others."""
        shown = asdict(self)
        del shown["details"]
        return {**shown.pop("fields"), **shown}


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Show whether a pipeline runs, its position and its lag. Exit code 1: dead, stuck, or with tables set aside."""
    from tailrace.pipeline.definition import load

    definition = load(pipeline)
    with notes.status("Looking at checkpoint and database"):
        status = look(definition)
    if json:
        print_json(status.to_json())
    else:
        results.print(table(status))
    raise typer.Exit(1 if status.is_lost else 0)


def look(definition: Definition) -> Status:
    """The status of a pipeline, from its checkpoint and, if they can be queried, from the server and the sink."""
    from tailrace.pipeline.aside import set_aside
    from tailrace.pipeline.first_snapshot import estimate
    from tailrace.pipeline.query_id import position_of
    from tailrace.pipeline.run_state import run_state
    from tailrace.pipeline.sink_health import problem as sink_problem
    from tailrace.snapshot.chunk_size import fixed_size

    config, package = definition.config(), definition.package()
    found = position_of(definition)
    admin = package.admin(captured_by(config, found))
    run = run_state(definition.checkpoint)
    here = None if found.committed is None else admin.position(found.committed.offset)
    server: SourceState | None = None
    reading = None
    try:
        server = admin.state(found.pipeline)
        reading = first(found, server, lambda: estimate(admin, config), time.time())
        problems = asked(admin, found)
    except SourceError as error:
        problems = (unasked(error),)
    if (away := sink_problem(definition)) is not None:
        problems = (*problems, away)
    status = assess(definition.name, found, server, here, time.time(), fixed_size(config), run.caught_up)
    status = replace(status, snapshot=status.snapshot or reading, problems=problems, run=run)
    status = replace(status, set_aside=set_aside(definition), replica=replica_tables(definition))
    status.tables.update(replica_rows(definition))
    return status


def asked(admin: Admin, position: Position) -> tuple[Finding, ...]:
    """What keeps changes from the pipeline, according to the server. Raises SourceError."""
    problems = tuple(admin.problems(begun=position.committed is not None))
    resumable = None if position.committed is None else admin.resumable(position.offsets)
    return problems if resumable is None else (*problems, resumable)


def unasked(error: SourceError) -> Finding:
    """The problem of a server that cannot be queried."""
    what = error.what if error.where is None else f"{error.where}: {error.what}"
    return Finding("connection", False, what, error.remedy)


def captured_by(config: Config, position: Position) -> Config:
    """The configuration with the tables that were added or removed while the pipeline ran."""
    from tailrace.snapshot.progress import Progress

    offset = position.committed.offset if position.committed else {}
    return replace(config, tables=Progress.from_json(offset.get("snapshots")).tables)


def assess(
    name: str,
    position: Position,
    server: SourceState | None,
    here: LogPosition | None,
    now: float,
    chunk_size: int | None = None,
    caught_up: float | None = None,
) -> Status:
    """The status, from checkpoint and server; `server` is None if it cannot be queried.

    `here` is the committed offset's position in the log; `now` and `caught_up` are times in seconds since
    1970. The latter is what the run says, by the planner's looks at the log; without it the age of the position counts.
    """
    from tailrace.snapshot.progress import Progress
    from tailrace.snapshot.report import report

    done = position.committed
    offset: dict[str, Any] = done.offset if done else {}
    end = None if server is None else server.log_end
    distance = None if here is None or end is None else end.distance(here)
    lag = None if distance is None else max(0, distance)
    planned = None if offset.get("ts_us") is None else offset["ts_us"] / 1e6
    since = planned if caught_up is None else caught_up
    age = None if since is None else max(0.0, now - since)
    return Status(
        name=name,
        phase=offset.get("phase", "not started" if position.planned is None else "first batch"),
        batch=done.number if done else None,
        position=None if here is None else here.to_text(),
        current=None if end is None else end.to_text(),
        lag_bytes=lag,
        lag_seconds=0.0 if here is not None and end is not None and not here < end else age,
        tables={},
        snapshot=report(offset, chunk_size, now),
        incomplete=Progress.from_json(offset.get("snapshots")).incomplete,
        details=() if server is None else server.details,
        fields={} if server is None else server.fields,
    )


def first(
    position: Position, server: SourceState, estimate: Callable[[], tuple[int, int]], now: float
) -> Report | None:
    """How far a first snapshot is that runs or was stopped in the middle; see `first_report`."""
    from tailrace.snapshot.report import first_report

    planned = position.planned.offset if position.planned else None
    done = position.committed.offset if position.committed else None
    return first_report(planned, done, estimate, server.reads_snapshot, now)


def replica_tables(definition: Definition) -> tuple[ReplicaTable, ...]:
    """The states of a replica's tables; none for other sinks, and for a checkpoint that Spark alone can read."""
    from tailrace.pipeline.checkpoint import SparkAloneError
    from tailrace.pipeline.replica_states import stored_states
    from tailrace.pipeline.table_states import Reaction, shown, takes

    target = definition.sink.replica
    if target is None:
        return ()
    try:
        states = stored_states(definition.checkpoint)
    except SparkAloneError:
        return ()
    reaction = Reaction(target.on_incomplete)
    return tuple(
        ReplicaTable(
            shown(name),
            state.state,
            datetime.fromtimestamp(state.since, timezone.utc).isoformat(timespec="seconds"),
            "; ".join(state.why) or None,
            takes(state, reaction) if state.is_lacking else None,
            state.is_lacking,
        )
        for name, state in sorted(states.items())
    )


def replica_rows(definition: Definition) -> dict[str, int]:
    """Rows of each of a replica's tables; empty for other sinks and remote replicas."""
    from tailrace.sinks.replica.target import row_counts

    target = definition.sink.replica
    return row_counts(target.root, target.options) if target is not None and target.is_here else {}


def table(status: Status) -> Table:
    """The status for people."""
    grid = Table.grid(padding=(0, 2))
    grid.add_row("[bold]pipeline[/]", escape(status.name))
    if status.run is not None:
        shown = escape(str(status.run))
        grid.add_row("run", f"[red]{shown}[/]" if status.run.is_dead else shown)
        last = status.run.last
        if last is not None and last.error is not None:
            remedy = f"; remedy: {last.remedy}" if last.remedy else ""
            grid.add_row("last error", escape(f"{last.error}{remedy} (at {last.at})"))
    grid.add_row("phase", status.phase)
    grid.add_row("position", f"{status.position or '-'} (batch {'-' if status.batch is None else status.batch})")
    grid.add_row("server", status.current or "[red]it cannot be queried[/]")
    if status.position is not None:
        measured = None if status.lag_bytes is None else size(status.lag_bytes)
        seconds = None if status.lag_seconds is None else f"{status.lag_seconds:,.1f} s"
        grid.add_row("lag", ", ".join(filter(None, (measured, seconds))) or "unknown")
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
    for one in status.incomplete:
        grid.add_row("[yellow]incomplete[/]", escape(str(one)))
    for each in status.replica:
        if each.is_lacking and each.state != "aside":
            said = f"{each.table} since {each.since}: {each.why}; {each.takes}"
            grid.add_row(f"[yellow]{each.state}[/]", escape(said))
        elif each.state == "gone":
            grid.add_row("gone", escape(f"{each.table} since {each.since}"))
    for name, rows in status.tables.items():
        grid.add_row(escape(name), counted(rows, "row"))
    return grid
