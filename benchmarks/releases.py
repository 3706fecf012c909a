"""Throughput and latency on each supported Spark beside the others, and the first micro-batch after a restart.

    python benchmarks/releases.py                       # 4.0 to 4.3, in turn, as often as --repetitions says
    python benchmarks/releases.py --restart 4.1 --rows 10000000

The environments are those of `make spark-versions`. Throughput is that of a backlog into the null sink; latency that of
100 changes a second with the trigger 0ms. `--restart` is a query of one's own, whose first micro-batch on 4.0 and 4.1
is all that was written while it was stopped.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import contestants
import measure
import run
import workload
from contestants import Course, Result

from tailrace.spark.versions import TRIED
from tailrace.testing.postgres import EmbeddedPostgres

WORK = Path(__file__).parents[1] / ".work" / "spark"
RELEASES = [".".join(map(str, each)) for each in TRIED]


def python(release: str) -> str:
    """The Python that has this release of Spark: that of its environment, or this one."""
    program = WORK / release / "bin" / "python"
    return str(program) if program.exists() else sys.executable


def throughput(server: EmbeddedPostgres, rows: int, repetitions: int) -> dict[str, list[Result]]:
    """Each release in turn, so often, each time from a slot of its own."""
    slots = {(release, n): f"release_{place}_{n}" for n in range(repetitions) for place, release in enumerate(RELEASES)}
    workload.make_slots(server, slots.values())
    course = Course(server, workload.fill(server, rows))
    results = defaultdict(list)
    for (release, _), slot in slots.items():
        with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
            content = course.content(slot, "null")
            result = contestants.measured(course, content, Path(folder), python=python(release))
        rates = f"{rows / result.seconds:,.0f} rows/s, {result.rows_a_cpu_second:,.0f} a CPU-second"
        print(f"  {release}: {rates}", flush=True)
        results[release].append(result)
    return results


def restart(server: EmbeddedPostgres, release: str, rows: int) -> None:
    """A query of one's own that is stopped, and started again behind so many rows."""
    course = Course(server, workload.Backlog(0, 0, "", 0))
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        content = course.content("restarted", "null")
        for behind in (0, rows):
            if behind:
                print(f"{workload.fill(server, behind).log_bytes / 1e6:,.0f} MB of log")
            task = {"content": content, "folder": folder, "kind": "own"}
            with contestants.reader(task, python(release)) as process, measure.Tree(process.pid) as tree:
                contestants.tell(process, "go")
                batches = contestants.answer(process)["batches"]
    peaks = ", ".join(f"{name} {peak / 1e6:,.0f} MB" for name, peak in sorted(tree.peaks.items()) if peak)
    rows_, seconds = batches[0]
    print(f"Spark {release}: {len(batches)} micro-batches with rows; the first: {rows_:,} in {seconds:.1f} s")
    print(f"the largest process of each program: {peaks}")


def main() -> None:
    """Measure, and print medians with the least and the most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--latency-seconds", type=float, default=20.0)
    parser.add_argument("--restart", choices=RELEASES)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.rows:,} rows")
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        workload.prepare(server)
        if given.restart:
            return restart(server, given.restart, given.rows)
        results = throughput(server, given.rows, given.repetitions)
        waits = defaultdict(list)
        for n in range(given.repetitions):
            for place, release in enumerate(RELEASES):
                first = given.rows + 1_000_000 * (1 + place + n * len(RELEASES))
                told = run.latency(server, "0ms", given.latency_seconds, first, python=python(release))
                waits[release].append(told["median_ms"])
    for release in RELEASES:
        each = results[release]
        rates = run.spread([result.rows / result.seconds for result in each])
        cpu = run.spread([result.rows_a_cpu_second for result in each])
        peak = statistics.median(result.peak_bytes for result in each) / 1e6
        print(f"| {release} | {rates} | {cpu} | {peak:,.0f} | {run.spread(waits[release])} |")


if __name__ == "__main__":
    main()
