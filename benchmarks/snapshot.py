"""A first snapshot beside COPY, pg_dump and the engine (`make bench-snapshot`); README.md says what is measured."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import contestants
import measure
import workload
from contestants import Result
from psycopg.conninfo import make_conninfo
from rich.table import Table
from run import console, environment, spread

from tailrace.testing.postgres import EmbeddedPostgres

SMALL = "public.fewer"
# What a pipeline's own readers and planners are called on the server.
SOURCE = "application_name ~ '^(tailrace|Debezium)' OR application_name IN ('psql', 'pg_dump')"
SAMPLE_SECONDS = 0.1


@dataclass
class Effect:
    """What a reader does to the source: seconds of its longest transaction, and the locks it holds on tables."""

    server: EmbeddedPostgres
    longest: float = 0.0
    locks: set[str] = field(default_factory=set)

    def __enter__(self) -> Effect:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        transactions = (
            f"SELECT max(extract(epoch FROM now() - xact_start))::float8 FROM pg_stat_activity WHERE {SOURCE}"
        )
        locks = (
            "SELECT DISTINCT l.mode FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_class c "
            f"ON c.oid = l.relation WHERE c.relkind = 'r' AND c.relname = ANY (%s) AND ({SOURCE})"
        )
        with self.server.connect(workload.DATABASE) as connection:
            while not self._over.wait(SAMPLE_SECONDS):
                row = connection.execute(transactions.encode()).fetchone()
                self.longest = max(self.longest, (row and row[0]) or 0.0)
                names = [table.rpartition(".")[2] for table in (workload.TABLE, SMALL)]
                self.locks.update(mode for (mode,) in connection.execute(locks.encode(), [names]))


@dataclass(frozen=True)
class Course:
    """The server, and how many rows the tables have."""

    server: EmbeddedPostgres
    rows: int
    few: int

    def properties(self, table: str) -> dict[str, str]:
        """A Debezium config that reads a table as it is now: events without schemas."""
        name = f"snapshot_{time.time_ns()}"
        return {
            **self.server.properties(workload.DATABASE),
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "name": "bench",
            "topic.prefix": "bench",
            "slot.name": name,
            "publication.name": workload.PUBLICATION,
            "publication.autocreate.mode": "disabled",
            "table.include.list": table.replace(".", r"\."),
            "snapshot.mode": "initial",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }

    def drop_slots(self) -> None:
        """Those of runs that are over."""
        with self.server.connect(workload.DATABASE) as connection:
            for _ in range(100):
                found = connection.execute("SELECT count(*) FROM pg_replication_slots WHERE active").fetchone()
                if found == (0,):
                    break
                time.sleep(0.1)
            connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def command(course: Course, arguments: list[str], rows: int) -> Result:
    """One of the server's own programs, from its start to its end, its output to /dev/null."""
    at = course.server
    where = make_conninfo(host=at.host, port=at.port, user=at.user, dbname=workload.DATABASE)
    server, before = measure.Tree(workload.pid(at)), measure.ended_children()
    server_before, begin = server.cpu(), time.monotonic()
    program = [str(workload.program(arguments[0], contestants.VERSION)), *arguments[1:], "--dbname", where]
    environment = {**os.environ, "PGPASSWORD": at.password}
    process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL)
    with measure.Tree(process.pid) as tree:
        code = process.wait(contestants.MOST_SECONDS)
    seconds = time.monotonic() - begin
    if code:
        raise SystemExit(f"{arguments[0]} ended with {code}")
    cpu = measure.ended_children() - before
    return Result(rows, seconds, cpu, server.cpu() - server_before, tree.peak, dict(tree.peaks))


def copy(course: Course) -> Result:
    """psql's COPY in binary form."""
    return command(course, ["psql", "-q", "-c", f"COPY {workload.TABLE} TO STDOUT (FORMAT binary)"], course.rows)


def dump(course: Course) -> Result:
    """pg_dump of the rows alone, as plain text."""
    return command(course, ["pg_dump", "--data-only", "--table", workload.TABLE, "--file", os.devnull], course.rows)


def tailrace(sink: str, cores: int) -> Callable[[Course], Result]:
    """A pipeline's first run, with so many tasks at a time."""

    def run(course: Course) -> Result:
        server = measure.Tree(workload.pid(course.server))
        with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
            content = pipeline(course, sink, cores)
            task = {"content": content, "folder": folder, "kind": "backlog"}
            with contestants.reader(task) as process, measure.Tree(process.pid) as tree:
                contestants.tell(process, "go")
                before, server_before = tree.cpu(), server.cpu()
                contestants.expect(process, "STREAMING")
                said = contestants.answer(process)
                cpu, server_cpu = tree.cpu() - before, server.cpu() - server_before
            if sink == "parquet":
                contestants.check_files(Path(folder) / "out", course.rows, course.rows * (course.rows + 1) // 2)
        if said["rows"] != course.rows:
            raise SystemExit(f"Tailrace read {said}; there are {course.rows} rows")
        return Result(said["rows"], said["seconds"], cpu, server_cpu, tree.peak, dict(tree.peaks))

    return run


def pipeline(course: Course, sink: str, cores: int) -> dict[str, Any]:
    """A pipeline's content."""
    return {
        "name": "bench",
        "source": {"config": course.properties(workload.TABLE)},
        "sink": {sink: {"path": "out"} if sink == "parquet" else {}},
        "checkpoint": "checkpoint",
        "trigger": "availableNow",
        "spark": {"spark.master": f"local[{cores}]"},
    }


def first_row(course: Course) -> float:
    """Seconds from a query's start, Spark being up, to its first row in `foreachBatch`."""
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        content = pipeline(course, "null", os.cpu_count() or 1)
        with contestants.reader({"content": content, "folder": folder, "kind": "first"}) as process:
            contestants.tell(process, "go")
            return float(contestants.answer(process)["seconds"])


def engine(course: Course) -> Result:
    """The engine that TAILRACE_REFERENCE names, of the smaller table, from its first event to its last."""
    server, before = measure.Tree(workload.pid(course.server)), measure.ended_children()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"name": "bench", "config": course.properties(SMALL)}, config)
        config.flush()
        program = [
            contestants.reference() or "",
            "--config",
            config.name,
            "--count-only",
            "--max-events",
            str(course.few),
        ]
        server_before = server.cpu()
        process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env={**os.environ, "LOG_LEVEL": "error"})
        with measure.Tree(process.pid) as tree:
            said, _ = process.communicate(timeout=contestants.MOST_SECONDS)
    found = re.search(r"events=(\d+) seconds=([\d.]+)", said)
    if process.returncode or found is None or int(found[1]) != course.few:
        raise SystemExit(f"the engine ended with {process.returncode}: {said}")
    cpu, server_cpu = measure.ended_children() - before, server.cpu() - server_before
    return Result(course.few, float(found[2]), cpu, server_cpu, tree.peak, dict(tree.peaks))


def main() -> None:
    """The whole benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    options = parser.parse_args()
    runs: dict[str, Callable[[Course], Result]] = {"COPY (FORMAT binary)": copy, "pg_dump": dump}
    several = sorted({1, os.cpu_count() or 1})
    for sink in ("null", "parquet"):
        runs.update({f"tailrace, {sink}, {cores} at a time": tailrace(sink, cores) for cores in several})
    if contestants.reference():
        runs["debezium engine"] = engine
        subprocess.run([str(contestants.reference())], capture_output=True, check=False)  # builds what it needs
    report: dict[str, Any] = {"environment": environment(), "options": vars(options)}
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        course = prepared(server, options.rows)
        report["snapshot"] = measured(course, runs, options.repetitions)
        waits = []
        for _ in range(options.repetitions):
            waits.append(first_row(course))
            course.drop_slots()
    report["first_row_seconds"] = waits
    console.print(f"Time to first row: {spread(waits, 1)} s")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")


def prepared(server: EmbeddedPostgres, rows: int) -> Course:
    """Two full tables, of which the smaller one has at most a million rows."""
    workload.prepare(server)
    few = min(rows, 1_000_000)
    with console.status("Inserting the rows"), server.connect(workload.DATABASE) as connection:
        connection.execute(f"INSERT INTO {workload.TABLE} {workload.rows_up_to(rows)}".encode())
        connection.execute(f"CREATE TABLE {SMALL} (LIKE {workload.TABLE} INCLUDING ALL)".encode())
        connection.execute(f"INSERT INTO {SMALL} SELECT * FROM {workload.TABLE} WHERE id <= {few}".encode())
        connection.execute(f"ALTER PUBLICATION {workload.PUBLICATION} ADD TABLE {SMALL}".encode())
        for table in (workload.TABLE, SMALL):
            connection.execute(f"VACUUM ANALYZE {table}".encode())
        connection.execute("CHECKPOINT")
        size = connection.execute("SELECT pg_table_size(%s::regclass)", [workload.TABLE]).fetchone()
    console.print(f"{rows:,} rows of 8 columns, {(size or (0,))[0] / 1e6:,.0f} MB")
    return Course(server, rows, few)


def measured(course: Course, runs: dict[str, Callable[[Course], Result]], repetitions: int) -> dict[str, Any]:
    """All of them in turn, so often."""
    results: dict[str, list[Result]] = {name: [] for name in runs}
    effects: dict[str, list[Effect]] = {name: [] for name in runs}
    for n in range(repetitions):
        for name, run in runs.items():
            with console.status(f"{name}, {n + 1} of {repetitions}"), Effect(course.server) as effect:
                results[name].append(run(course))
            course.drop_slots()
            effects[name].append(effect)
            last = results[name][-1]
            console.print(f"{name}: {last.rows / last.seconds:,.0f} rows/s, longest transaction {effect.longest:.1f} s")
    console.print(table(results, effects))
    return {
        name: [
            {**result.to_json(), "longest_transaction_seconds": effect.longest, "locks": sorted(effect.locks)}
            for result, effect in zip(results[name], effects[name], strict=True)
        ]
        for name in runs
    }


def table(results: dict[str, list[Result]], effects: dict[str, list[Effect]]) -> Table:
    """Medians of all repetitions."""
    shown = Table("", "rows/s", "rows/CPU-s", "server CPU-s", "peak MB", "longest transaction", "locks on the table")
    for name, each in results.items():
        shown.add_row(
            name,
            spread([one.rows / one.seconds for one in each]),
            spread([one.rows_a_cpu_second for one in each]),
            spread([one.server_cpu_seconds for one in each], 1),
            spread([one.peak_bytes / 1e6 for one in each]),
            f"{statistics.median(effect.longest for effect in effects[name]):.1f} s",
            ", ".join(sorted(set().union(*(effect.locks for effect in effects[name])))),
        )
    return shown


if __name__ == "__main__":
    main()
