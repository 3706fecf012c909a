"""What comparing a replica with its source all the time costs the pipeline and the server, under traffic.

`python benchmarks/continuous.py`; README.md says how it measures.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import contestants
import measure
import workload
import yaml
from contestants import Course
from deltalake import DeltaTable
from rich.table import Table
from run import console, environment

from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.verified import Verified, stored
from tailrace.testing.postgres import EmbeddedPostgres

_COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run"]
_PATIENCE_S, _LOOK_S = 300.0, 0.2


@dataclass(frozen=True)
class Cost:
    """Per second: rows compared, CPU seconds of the pipeline and of the server; seconds until the last row is there."""

    compared: float
    pipeline: float
    server: float
    behind: float


def main() -> None:
    """The whole benchmark."""
    options = arguments()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rows:,} rows")
    found: dict[int, Cost] = {}
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        workload.prepare(server)
        course = Course(server, workload.fill(server, options.rows))
        first = options.rows + 1
        for rate in options.rates:
            with console.status(f"rate {rate:,}"):
                found[rate] = cost(course, rate, options, first)
            first += int(options.traffic * options.seconds)
    console.print(shown(found))
    if options.json:
        report = {"environment": environment(), "options": vars(options), "rates": {n: asdict(found[n]) for n in found}}
        options.json.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the table before the traffic")
    parser.add_argument("--traffic", type=int, default=1000, help="inserts a second")
    parser.add_argument("--seconds", type=int, default=60, help="of traffic that are measured")
    parser.add_argument("--rates", type=int, nargs="+", default=[0, 2000, 20_000], help="0: nothing is compared")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    return parser.parse_args()


def cost(course: Course, rate: int, options: argparse.Namespace, first: int) -> Cost:
    """A pipeline of its own into a new replica; what it takes while there is traffic."""
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as name:
        folder = Path(name)
        with running(course, rate, folder) as process, measure.Tree(process.pid) as tree:
            server = measure.Tree(workload.pid(course.server))
            await_(process, lambda: phase(folder) == "stream" and (not rate or compared(folder) > 0))
            begin, before = time.monotonic(), (tree.cpu(), server.cpu(), compared(folder))
            traffic = threading.Thread(
                target=workload.trickle, args=(course.server, first, options.traffic, options.seconds)
            )
            traffic.start()
            traffic.join()
            seconds = time.monotonic() - begin
            after = tree.cpu(), server.cpu(), compared(folder)
            wanted = source_rows(course.server)
            await_(process, lambda: replica_rows(folder) == wanted)
            behind = time.monotonic() - begin - seconds
    pipeline, at_server, rows = ((then - now) / seconds for then, now in zip(after, before, strict=True))
    return Cost(rows, pipeline, at_server, behind)


@contextmanager
def running(course: Course, rate: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The pipeline as users run it."""
    config = {**course.properties(f"rate_{rate}"), "snapshot.mode": "initial"}
    content: dict[str, Any] = {
        "name": "bench",
        "source": {"config": config},
        "sink": {"replica": {"path": "lake"}},
        "checkpoint": "checkpoint",
    }
    if rate:
        content["reconcile"] = {"continuous": True, "rate": rate}
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with (folder / "run.log").open("ab") as log:
        process = subprocess.Popen([*_COMMAND, str(folder / "pipeline.yaml")], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE_S)


def await_(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    """Wait for a condition. Ends the benchmark if the pipeline ends, or it takes too long."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the pipeline has ended, or does not come to its end")
        time.sleep(_LOOK_S)


def phase(folder: Path) -> str:
    """What the pipeline reads."""
    done = position(str(folder / "checkpoint")).committed
    return "" if done is None else str(done.offset.get("phase"))


def replica_rows(folder: Path) -> int:
    """How many rows the replica has, by its log."""
    return int(DeltaTable(folder / "lake" / workload.TABLE).count())


def compared(folder: Path) -> int:
    """How many rows the present pass has compared; a pass is longer than the measurement."""
    known = stored(str(folder / "checkpoint")).get(workload.TABLE, Verified())
    return known.rows


def source_rows(server: EmbeddedPostgres) -> int:
    """How many rows the source has."""
    with server.connect(workload.DATABASE) as connection:
        row = connection.execute(f"SELECT count(*) FROM {workload.TABLE}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def shown(found: dict[int, Cost]) -> Table:
    """The costs, a rate in a line."""
    table = Table("rate", "rows compared/s", "CPU of the pipeline", "CPU of PostgreSQL", "last row is there after")
    for rate, each in found.items():
        cpu = (f"{100 * value:.0f} %" for value in (each.pipeline, each.server))
        table.add_row(f"{rate:,}" if rate else "not compared", f"{each.compared:,.0f}", *cpu, f"{each.behind:.1f} s")
    return table


if __name__ == "__main__":
    main()
