"""What it costs to be watched: a look at many tables, and the throughput with metrics served and without.

`python benchmarks/operate.py`; README.md says how it measures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import contestants
import numpy as np
import pyarrow as pa
import workload
from contestants import Course, Result
from run import console, environment, spread, throughput_table

sys.path.insert(0, str(Path(__file__).parents[1]))

from tailrace.model.change import ChangeBatch
from tailrace.model.table import TableId, TableSchema
from tailrace.operate.metrics import exposition
from tailrace.operate.status import source_look
from tailrace.pipeline.definition import Definition, from_content
from tailrace.spark.observed import Transactions, operations
from tailrace.testing.postgres import EmbeddedPostgres
from tests.unit.operate.made import figures, with_tables

LOOKS = 30
KINDS = {"uncounted": "without counts", "followed": "with counts", "served": "with counts, served"}
# Nowhere and a replica: what is counted comes with the rows of the latter alone.
SINKS: dict[str, dict[str, Any]] = {"null": {}, "replica": {"path": "out"}}


def main() -> None:
    """The whole benchmark."""
    options = arguments()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rows:,} rows")
    report: dict[str, Any] = {"environment": environment(), "options": vars(options), "counting": counting()}
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        report["looks"] = looks(server, options.tables)
        workload.prepare(server)
        report["throughput"] = throughput(server, options.rows, options.repetitions, options.sinks)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000, help="captured tables of the looks")
    parser.add_argument("--rows", type=int, default=500_000, help="inserts in the backlog; 0: no throughput")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--sinks", nargs="+", choices=SINKS, default=list(SINKS))
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    return parser.parse_args()


def counting() -> float:
    """Nanoseconds of CPU a row to count operations and transactions, in batches of 10,000 rows and 100 transactions."""
    chance, rows = np.random.default_rng(1), 10_000
    columns = {"op": chance.choice(["c", "u", "d"], rows), "commit": np.sort(chance.integers(0, 100, rows))}
    batch = ChangeBatch(TableSchema(TableId("", "public", "t"), (), (), ()), pa.record_batch(columns))
    transactions = Transactions()
    found = cpu(lambda: [(operations(batch), transactions.count([batch])) for _ in range(100)]) * 1e6 / 100 / rows
    console.print(f"Counting takes {found:.1f} ns a row")
    return found


def looks(server: EmbeddedPostgres, tables: int) -> dict[str, float]:
    """Milliseconds of CPU of `/metrics`, and of a look at checkpoint and server, with and without what it publishes."""
    shown = with_tables(figures(), tables)
    found = {"/metrics": cpu(lambda: exposition([shown])), "bytes": float(len(exposition([shown])))}
    server.create_database("looks")
    with server.connect("looks") as connection, tempfile.TemporaryDirectory() as folder:
        for number in range(tables):
            connection.execute(f"CREATE TABLE t{number} (id int PRIMARY KEY, note text)".encode())
        connection.execute("CREATE PUBLICATION pub FOR ALL TABLES")
        definition = pipeline(server, Path(folder))
        found["look"] = cpu(lambda: source_look(definition, problems=(), compares=False))
        found["look with problems"] = cpu(lambda: source_look(definition, compares=False))
    told = "; ".join(f"{name} {value:,.1f}{'' if name == 'bytes' else ' ms'}" for name, value in found.items())
    console.print(f"{tables:,} tables: {told}")
    return found


def pipeline(server: EmbeddedPostgres, folder: Path) -> Definition:
    """A replica of all tables of the database."""
    config = {**server.properties("looks"), "topic.prefix": "looks", "publication.name": "pub"}
    content = {"source": {"config": config}, "sink": {"replica": {"path": "lake"}}, "checkpoint": "state"}
    return from_content(content, base=folder, where="benchmark")


def cpu(work: Callable[[], object]) -> float:
    """The median of the CPU time of this process, in milliseconds."""
    work()
    taken = []
    for _ in range(LOOKS):
        begin = time.process_time()
        work()
        taken.append((time.process_time() - begin) * 1000)
    return median(taken)


def throughput(server: EmbeddedPostgres, rows: int, repetitions: int, sinks: list[str]) -> dict[str, Any]:
    """A backlog, read into a sink in all ways in turn, each time from a slot of its own."""
    if not rows:
        return {}
    kinds = [(sink, kind) for sink in sinks for kind in KINDS if (sink, kind) != ("null", "uncounted")]
    slots = {(sink, kind): [f"{sink}_{kind}_{n}" for n in range(repetitions)] for sink, kind in kinds}
    workload.make_slots(server, [slot for each in slots.values() for slot in each])
    with console.status("Inserting the rows"):
        course = Course(server, workload.fill(server, rows))
    results: dict[str, list[Result]] = {f"{sink}, {KINDS[kind]}": [] for sink, kind in slots}
    for n in range(repetitions):
        for (sink, kind), names in slots.items():
            content = {**course.content(names[n], "null"), "sink": {sink: SINKS[sink]}}
            with console.status(f"{sink}, {KINDS[kind]}, {n + 1} of {repetitions}"):
                with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
                    found = contestants.measured(course, content, Path(folder), kind)
                results[f"{sink}, {KINDS[kind]}"].append(found)
    console.print(throughput_table(results))
    for sink in sinks:
        alone, served = (results[f"{sink}, {KINDS[kind]}"] for kind in ("followed", "served"))
        for name, of in (("CPU time", cpu_seconds), ("time", seconds)):
            ratios = [of(one) / of(other) for one, other in zip(served, alone, strict=True)]
            console.print(f"{sink}: {name} with the server by that without, in pairs: {spread(ratios, 3)}")
    return {name: [result.to_json() for result in each] for name, each in results.items()}


def cpu_seconds(result: Result) -> float:
    """CPU time a row, of the reader's processes."""
    return result.cpu_seconds / result.rows


def seconds(result: Result) -> float:
    """Time a row."""
    return result.seconds / result.rows


if __name__ == "__main__":
    main()
