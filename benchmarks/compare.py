"""`make bench-compare`: log, snapshot, latency and replica beside the others, with the ratios that are the goals.

Everything is run in turn and again from the start, figures are medians, and contents are verified; README.md says what
exactly is measured. The engine runs if TAILRACE_REFERENCE names it; the ratios to it are left out otherwise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import charts
import contestants
import replicas
import results_page
import run
import snapshot
import workload
from contestants import Course, Result
from rich.table import Table

from tailrace.testing.postgres import EmbeddedPostgres

RESULTS = Path(__file__).parent / "results"
CHARTS = Path(__file__).parent.parent / "docs" / "speed"
TAILRACE, ENGINE, RECVLOGICAL = "tailrace, null", "debezium engine", "pg_recvlogical"
COPY = "COPY (FORMAT binary)"
# Changes a second of a latency run, by the name in the report.
FEW, MANY = 100, 5_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured: rows of each part, seconds of a latency run, and how often all of it is repeated."""

    log_rows: int = 2_000_000
    snapshot_rows: int = 3_000_000
    replica_rows: int = 150_000
    latency_seconds: float = 15.0
    repetitions: int = 3


QUICK = Sizes(100_000, 100_000, 10_000, 3.0, 1)

# A ratio's goal, and whether less is better.
GOALS = {
    "events_per_second_vs_engine": (8.0, False),
    "rows_per_cpu_second_vs_engine": (10.0, False),
    "events_per_second_vs_recvlogical": (1.0, False),
    "snapshot_rows_per_second_vs_engine": (8.0, False),
    "snapshot_vs_copy": (0.2, False),
    "replica_changes_per_second": (20_000.0, False),
    "p99_ms_at_100_per_second": (250.0, True),
}


def main() -> None:
    """The whole comparison, or a quick one that shows that all parts work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, once; nothing is stored")
    parser.add_argument(
        "--json", type=Path, help="where to store the figures, instead of benchmarks/results/<date>.json"
    )
    for name, kind in (("log-rows", int), ("snapshot-rows", int), ("replica-rows", int), ("repetitions", int)):
        parser.add_argument(f"--{name}", type=kind)
    given = parser.parse_args()
    chosen = asdict(QUICK if given.quick else Sizes())
    sizes = Sizes(**{name: getattr(given, name, None) or value for name, value in chosen.items()})
    if reference := contestants.reference():
        subprocess.run([reference], capture_output=True, check=False)  # builds what it needs, then tells its usage
    report: dict[str, Any] = {"environment": run.environment(), "sizes": asdict(sizes)}
    report.update(of_the_log(sizes))
    report["snapshot"] = of_a_snapshot(sizes)
    report["replica"] = of_a_replica(sizes)
    report["ratios"] = ratios(report)
    run.console.print(summary(report["ratios"]))
    place = given.json or (None if given.quick else fresh(RESULTS, date.today().isoformat()))
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")
        run.console.print(f"Written: {place}")
    if not given.quick:
        charts.write(report, CHARTS)
        results_page.write()


def fresh(folder: Path, name: str) -> Path:
    """A file of that name, numbered from the second one of a day on."""
    places = [folder / f"{name}.json", *(folder / f"{name}-{n}.json" for n in range(2, 100))]
    return next(place for place in places if not place.exists())


def of_the_log(sizes: Sizes) -> dict[str, Any]:
    """A backlog read by all, and then the latency of live changes."""
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        workload.prepare(server)
        report: dict[str, Any] = {"log": run.throughput(server, sizes.log_rows, sizes.repetitions), "latency": {}}
        first = sizes.log_rows
        for a_second in (FEW, MANY):
            report["latency"][str(a_second)] = found = []
            for _ in range(sizes.repetitions if a_second == FEW else 1):
                first += 1_000_000
                found.append(run.latency(server, "0ms", sizes.latency_seconds, first, a_second))
    return report


def of_a_snapshot(sizes: Sizes) -> dict[str, Any]:
    """A first snapshot: COPY, Tailrace with as many tasks as cores, and the engine."""
    cores = run.environment()["cores"]
    runs: dict[str, Callable[[snapshot.Course], Result]] = {
        COPY: snapshot.copy,
        TAILRACE: snapshot.tailrace("null", cores),
    }
    if contestants.reference():
        runs[ENGINE] = snapshot.engine
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        return snapshot.measured(snapshot.prepared(server, sizes.snapshot_rows), runs, sizes.repetitions)


def of_a_replica(sizes: Sizes) -> dict[str, Any]:
    """A backlog of changes into a Delta replica."""
    slots = [f"replica_{n}" for n in range(sizes.repetitions)]
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        workload.prepare(server)
        course = Course(server, replicas.backlog(server, slots, sizes.replica_rows))
        results = [replicas.tailrace(course, slot) for slot in slots]
    run.console.print(f"Replica: {run.spread([one.rows / one.seconds for one in results])} changes/s")
    return {"tailrace, replica": [one.to_json() for one in results]}


def ratios(report: dict[str, Any]) -> dict[str, float]:
    """The figures that have goals; those of the engine only if it ran."""

    def median(part: str, name: str, figure: str = "rows_a_second") -> float:
        return float(statistics.median(one[figure] for one in report[part][name]))

    found = {
        "events_per_second_vs_recvlogical": median("log", TAILRACE) / median("log", RECVLOGICAL),
        "snapshot_vs_copy": median("snapshot", TAILRACE) / median("snapshot", COPY),
        "replica_changes_per_second": median("replica", "tailrace, replica"),
        "p99_ms_at_100_per_second": statistics.median(one["p99_ms"] for one in report["latency"][str(FEW)]),
    }
    if ENGINE in report["log"]:
        cpu = "rows_a_cpu_second"
        found["events_per_second_vs_engine"] = median("log", TAILRACE) / median("log", ENGINE)
        found["rows_per_cpu_second_vs_engine"] = median("log", TAILRACE, cpu) / median("log", ENGINE, cpu)
        found["snapshot_rows_per_second_vs_engine"] = median("snapshot", TAILRACE) / median("snapshot", ENGINE)
    return {name: found[name] for name in GOALS if name in found}


def summary(found: dict[str, float]) -> Table:
    """Each ratio beside its goal."""
    table = Table("", "measured", "goal", "")
    for name, value in found.items():
        goal, is_most = GOALS[name]
        digits = 0 if goal >= 100 else 2
        meets = value <= goal if is_most else value >= goal
        table.add_row(
            name,
            f"{value:,.{digits}f}",
            f"{'≤' if is_most else '≥'} {goal:,g}",
            "met" if meets else "[yellow]not met[/]",
        )
    return table


if __name__ == "__main__":
    main()
