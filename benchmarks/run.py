"""`make bench`: throughput, CPU, memory and latency of Tailrace and others; README.md says what exactly is measured."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import contestants
import measure
import psutil
import pyspark
import workload
from contestants import Course, Result
from rich.console import Console
from rich.table import Table

from tailrace.testing.postgres import EmbeddedPostgres
from tailrace.version import __version__

CHANGES_A_SECOND = 100
WARM_UP_SECONDS = 10
TRIGGERS = ("0ms", "500ms")

console = Console(width=None if sys.stdout.isatty() else 150)


def main() -> None:
    """The whole benchmark."""
    options = arguments()
    console.print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rows:,} rows, {options.repetitions} times"
    )
    if os.getloadavg()[0] > 0.3:
        console.print("[yellow]This machine is not idle: the figures will say less about the readers.[/]")
    report: dict[str, Any] = {"environment": environment(), "options": vars(options)}
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        workload.prepare(server, wide=options.wide)
        report["throughput"] = throughput(server, options.rows, options.repetitions, options.registry)
        report["latency"] = {
            trigger: latency(server, trigger, options.latency_seconds, options.rows + 1_000_000 * (place + 1))
            for place, trigger in enumerate(TRIGGERS)
            if options.latency_seconds and not options.wide and not options.registry
        }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="inserts in the backlog")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument(
        "--latency-seconds", type=float, default=30.0, help="how long latency is measured; 0: not at all"
    )
    parser.add_argument("--wide", action="store_true", help="30 columns of mixed types instead of 8; no latency")
    parser.add_argument("--registry", help="Avro by Apicurio's registry at this address, in place of JSON; no latency")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    return parser.parse_args()


def environment() -> dict[str, Any]:
    """Where and with what it is measured."""
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "tailrace": __version__,
        "commit": subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
        ).stdout.strip(),
        "pyspark": pyspark.__version__,
        "postgresql": contestants.VERSION,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "load": os.getloadavg()[0],
    }


def throughput(server: EmbeddedPostgres, rows: int, repetitions: int, registry: str | None = None) -> dict[str, Any]:
    """All of them in turn, so often; each from a slot of its own that was made before the rows."""
    who = contestants.contestants(encode_alone=registry is not None)
    if reference := contestants.reference():
        subprocess.run([reference], capture_output=True, check=False)  # builds what it needs, then tells its usage
    runs = {name: [f"bench_{place}_{n}" for n in range(repetitions)] for place, name in enumerate(who)}
    workload.make_slots(server, ["counted", *(slot for slots in runs.values() for slot in slots)])
    with console.status("Inserting the rows"):
        backlog = workload.fill(server, rows)
        if workload.inserts_behind(server, "counted") != rows:
            raise SystemExit("the server itself does not find all inserts behind the slot")
    console.print(
        f"Backlog: {backlog.rows:,} inserts, {workload.TRANSACTION_ROWS} a transaction, "
        f"{backlog.log_bytes / 1e6:,.0f} MB of log"
    )
    course = Course(server, backlog, registry=registry)
    results: dict[str, list[Result]] = {name: [] for name in runs}
    for n in range(repetitions):
        for name, run in who.items():
            with console.status(f"{name}, {n + 1} of {repetitions}"):
                results[name].append(run(course, runs[name][n]))
            last = results[name][-1]
            console.print(
                f"  {name:<18} {last.rows / last.seconds:>9,.0f} rows/s, {last.rows_a_cpu_second:>9,.0f} a CPU-second"
            )
    console.print(throughput_table(results))
    return {name: [result.to_json() for result in each] for name, each in results.items()}


def throughput_table(results: dict[str, list[Result]]) -> Table:
    """Medians, and the least and most in brackets."""
    table = Table("", "rows/s", "rows/CPU-s", "server CPU-s", "peak MB", "largest process MB")
    for name, each in results.items():
        peaks = {program: max(result.peaks.get(program, 0) for result in each) for program in each[0].peaks}
        table.add_row(
            name,
            spread([result.rows / result.seconds for result in each]),
            spread([result.rows_a_cpu_second for result in each]),
            spread([result.server_cpu_seconds for result in each], 1),
            spread([result.peak_bytes / 1e6 for result in each]),
            ", ".join(f"{program} {peak / 1e6:,.0f}" for program, peak in sorted(peaks.items()) if peak),
        )
    return table


def spread(values: list[float], digits: int = 0) -> str:
    """Median (least-most)."""
    middle, least, most = (f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least}-{most})"


def latency(
    server: EmbeddedPostgres,
    trigger: str,
    seconds: float,
    first: int,
    a_second: int = CHANGES_A_SECOND,
    python: str = sys.executable,
) -> dict[str, Any]:
    """From commit to the rows in `foreachBatch`, under so many changes a second, see `trickle`."""
    slot = f"latency_{first}"
    workload.make_slots(server, [slot])
    course = Course(server, workload.Backlog(0, 0, "", 0))
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        content = {**course.content(slot, "null"), "trigger": trigger}
        with contestants.reader({"content": content, "folder": folder, "kind": "latency"}, python) as process:
            contestants.tell(process, "go")
            contestants.expect(process, "STREAMING")
            tree = measure.Tree(process.pid)
            warm = workload.trickle(server, first, a_second, WARM_UP_SECONDS)
            before = tree.cpu()
            sent = workload.trickle(server, first + 500_000, a_second, seconds)
            cpu = (tree.cpu() - before) / seconds
            contestants.tell(process, str(warm + sent))
            seen = sorted(contestants.answer(process)["seen"])
    if len(seen) != warm + sent:
        raise SystemExit(f"{len(seen)} of {warm + sent} changes arrived")
    waits = sorted((arrival - commit) / 1000 for commit, arrival in seen[warm:])
    figures = {"median_ms": statistics.median(waits), "p99_ms": waits[int(len(waits) * 0.99)], "most_ms": waits[-1]}
    told = ", ".join(f"{name.removesuffix('_ms')} {value:,.0f} ms" for name, value in figures.items())
    console.print(f"Latency, {a_second:,} changes/s, trigger {trigger}: {told}; {cpu:.2f} cores busy")
    return {**figures, "changes": sent, "cores_busy": cpu}


if __name__ == "__main__":
    main()
