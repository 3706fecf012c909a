"""`tailrace status`: how far a pipeline is, how far behind its database, and what its slot holds back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tailrace.cli.terminal import notes, print_json, results
from tailrace.model.quantity import size

if TYPE_CHECKING:
    from tailrace.config import Config
    from tailrace.connectors.finding import Finding
    from tailrace.connectors.postgres.operations import ServerState, SlotState
    from tailrace.pipeline.checkpoint import Position
    from tailrace.pipeline.definition import Definition
    from tailrace.snapshot.incomplete import Incomplete
    from tailrace.snapshot.report import Report


@dataclass(frozen=True)
class Status:
    """What the command shows. `lag_seconds` is the age of the committed position, 0 when nothing lies after it.

    `incomplete` are the tables whose snapshots were given up, `problems` what is wrong with the publication now.
    """

    name: str
    phase: str
    batch: int | None
    position: str | None
    current: str
    lag_bytes: int | None
    lag_seconds: float | None
    retained_bytes: int | None
    slot: SlotState | None
    tables: dict[str, int]
    snapshot: Report | None = None
    incomplete: tuple[Incomplete, ...] = ()
    problems: tuple[Finding, ...] = ()


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    json: Annotated[bool, typer.Option("--json", help="As one line of JSON.")] = False,
) -> None:
    """Show position, lag, what the slot retains, and a replica's rows. Works while the pipeline runs, and when not."""
    from tailrace.connectors.postgres.operations import server_state
    from tailrace.connectors.postgres.published import problems
    from tailrace.pipeline.checkpoint import position
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.first_snapshot import estimate

    definition = load(pipeline)
    with notes.status("Looking at checkpoint and database"):
        config = definition.config()
        size_of_chunk = config.number("incremental.snapshot.chunk.size")
        found, server = position(definition.checkpoint), server_state(config)
        status = assess(definition.name, found, server, time.time(), size_of_chunk)
        status = replace(
            status, snapshot=status.snapshot or first(found, server, lambda: estimate(config), time.time())
        )
        status.tables.update(replica_rows(definition))
        captured, begun = captured_by(config, found), found.committed is not None
        status = replace(status, problems=tuple(problems(captured, begun=begun)))
    if json:
        print_json(asdict(status))
    else:
        results.print(table(status))


def captured_by(config: Config, position: Position) -> Config:
    """The configuration with the tables that were added or removed while the pipeline ran."""
    from tailrace.snapshot.progress import Progress

    offset = position.committed.offset if position.committed else {}
    return replace(config, tables=Progress.from_json(offset.get("snapshots")).tables)


def assess(name: str, position: Position, server: ServerState, now: float, chunk_size: int = 1024) -> Status:
    """The status from what checkpoint and server say; `now` is the time in seconds since 1970."""
    from tailrace.connectors.postgres.position import parse_lsn
    from tailrace.snapshot.progress import Progress
    from tailrace.snapshot.report import report

    done = position.committed
    offset: dict[str, Any] = done.offset if done else {}
    lsn = offset.get("lsn")
    lag = None if lsn is None else max(0, parse_lsn(server.current) - parse_lsn(lsn))
    age = None if offset.get("ts_us") is None else max(0.0, now - offset["ts_us"] / 1e6)
    return Status(
        name=name,
        phase=offset.get("phase", "not started" if position.planned is None else "first batch"),
        batch=done.number if done else None,
        position=lsn,
        current=server.current,
        lag_bytes=lag,
        lag_seconds=0.0 if lag == 0 else age,
        retained_bytes=server.retained_bytes(),
        slot=server.slot,
        tables={},
        snapshot=report(offset, chunk_size, now),
        incomplete=Progress.from_json(offset.get("snapshots")).incomplete,
    )


def first(
    position: Position, server: ServerState, estimate: Callable[[], tuple[int, int]], now: float
) -> Report | None:
    """How far a first snapshot is that runs or was stopped in the middle; see `first_report`."""
    from tailrace.snapshot.report import first_report

    planned = position.planned.offset if position.planned else None
    done = position.committed.offset if position.committed else None
    running = planned is not None and server.reads_snapshot(str(planned.get("pipeline")))
    return first_report(planned, done, estimate, running, now)


def replica_rows(definition: Definition) -> dict[str, int]:
    """Rows of each of a replica's tables; empty for other sinks and remote replicas."""
    from tailrace.sinks.replica.target import row_counts

    if definition.sink.replica is None:
        return {}
    return row_counts(Path(definition.sink.replica.path))


def table(status: Status) -> Table:
    """The status for people."""
    grid = Table.grid(padding=(0, 2))
    grid.add_row("[bold]pipeline[/]", escape(status.name))
    grid.add_row("phase", status.phase)
    grid.add_row("position", f"{status.position or '-'} (batch {'-' if status.batch is None else status.batch})")
    grid.add_row("server", status.current)
    if status.lag_bytes is not None:
        seconds = "" if status.lag_seconds is None else f", {status.lag_seconds:,.1f} s"
        grid.add_row("lag", f"{size(status.lag_bytes)}{seconds}")
    grid.add_row("slot", _slot(status))
    if status.snapshot is not None:
        grid.add_row("snapshot", escape(str(status.snapshot)))
    for finding in status.problems:
        mark = "[red]problem[/]" if finding.ok is False else "[yellow]warning[/]"
        grid.add_row(mark, escape(f"{finding.what}; remedy: {finding.remedy}"))
    for one in status.incomplete:
        grid.add_row("[yellow]incomplete[/]", escape(str(one)))
    for name, rows in status.tables.items():
        grid.add_row(escape(name), f"{rows:,} rows")
    return grid


def _slot(status: Status) -> str:
    if status.slot is None:
        return "[yellow]there is none[/]"
    state = f"active (server process {status.slot.pid})" if status.slot.active else "[yellow]not active[/]"
    kept = "" if status.retained_bytes is None else f", retains {size(status.retained_bytes)} of WAL"
    return f"{escape(status.slot.name)}: {state}{kept} ({status.slot.wal_status})"
