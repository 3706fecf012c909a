"""Who is measured: pg_recvlogical, Tailrace, a Debezium engine; each reads one backlog from a slot of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import measure
import pyarrow.compute as pc
import pyarrow.dataset as ds
import workload
from psycopg.conninfo import make_conninfo

from tailrace.config.converter_names import APICURIO_AVRO
from tailrace.testing.postgres import EmbeddedPostgres

VERSION = 18
MOST_SECONDS = 3600


@dataclass(frozen=True)
class Result:
    """One measurement. CPU seconds are those of the reader's processes, and the server's meanwhile; memory in bytes."""

    rows: int
    seconds: float
    cpu_seconds: float
    server_cpu_seconds: float
    peak_bytes: int
    peaks: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """With the rates."""
        return {**asdict(self), "rows_a_second": self.rows / self.seconds, "rows_a_cpu_second": self.rows_a_cpu_second}

    @property
    def rows_a_cpu_second(self) -> float:
        """Of the reader's processes."""
        return self.rows / self.cpu_seconds


@dataclass(frozen=True)
class Course:
    """The server and the backlog that all of them read."""

    server: EmbeddedPostgres
    backlog: workload.Backlog
    database: str = workload.DATABASE
    registry: str | None = None

    def properties(self, slot: str) -> dict[str, str]:
        """A Debezium config that reads a slot's backlog: JSON without schemas, or Avro with a registry; no snapshot."""
        return {
            **self.server.properties(self.database),
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "name": "bench",
            "topic.prefix": "bench",
            "slot.name": slot,
            "publication.name": workload.PUBLICATION,
            "publication.autocreate.mode": "disabled",
            "table.include.list": workload.TABLE.replace(".", r"\."),
            "snapshot.mode": "no_data",
            **({} if self.registry is None else {f"{part}.converter": APICURIO_AVRO for part in ("key", "value")}),
            **{f"{part}.converter.{name}": value for part in ("key", "value") for name, value in self._converter()},
        }

    def _converter(self) -> Iterable[tuple[str, str]]:
        if self.registry is None:
            return {"schemas.enable": "false"}.items()
        return {"apicurio.registry.url": self.registry, "apicurio.registry.auto-register": "true"}.items()

    def content(self, slot: str, sink: str) -> dict[str, Any]:
        """A pipeline that reads a slot's backlog."""
        return {
            "name": "bench",
            "source": {"config": {**self.properties(slot), "slot.takeover": "true"}},
            "sink": {sink: {"path": "out"} if sink == "parquet" else {}},
            "checkpoint": "checkpoint",
            "trigger": "availableNow",
        }


def recvlogical(course: Course, slot: str) -> Result:
    """The server's own client, from its start to its end, bytes to /dev/null. Rows are counted by the server."""
    at = course.server
    where = make_conninfo(host=at.host, port=at.port, user=at.user, dbname=course.database)
    command = [
        str(workload.program("pg_recvlogical", VERSION)),
        "--start",
        "--no-loop",
        "--no-password",
        "--slot",
        slot,
    ]
    command += ["--endpos", course.backlog.end, "--file", os.devnull, "--dbname", where]
    command += ["-o", "proto_version=1", "-o", f"publication_names={workload.PUBLICATION}"]
    server, before = measure.Tree(workload.pid(course.server)), measure.ended_children()
    server_before, begin = server.cpu(), time.monotonic()
    environment = {**os.environ, "PGPASSWORD": course.server.password}
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        with measure.Tree(process.pid) as tree:
            code = process.wait(MOST_SECONDS)
    finally:
        process.kill()
    seconds = time.monotonic() - begin
    if code:
        raise SystemExit(f"pg_recvlogical ended with {code}")
    cpu = measure.ended_children() - before
    return Result(course.backlog.rows, seconds, cpu, server.cpu() - server_before, tree.peak, dict(tree.peaks))


def tailrace_null(course: Course, slot: str) -> Result:
    """Tailrace into its null sink: every event encoded, counted and discarded where it is read, as by the engine."""
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        return measured(course, course.content(slot, "null"), Path(folder))


def tailrace_rows(course: Course, slot: str) -> Result:
    """Tailrace's records as rows of Spark (shape `kafka`), taken one by one by Spark's own null sink."""
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        return measured(course, course.content(slot, "null"), Path(folder), "rows")


def tailrace_parquet(course: Course, slot: str) -> Result:
    """Tailrace into Parquet files, whose contents are read again and compared."""
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        result = measured(course, course.content(slot, "parquet"), Path(folder))
        check_files(Path(folder) / "out", course.backlog.rows, course.backlog.ids)
        return result


def check_files(files: Path, rows: int, ids: int) -> None:
    """Ends the benchmark unless Parquet files hold so many records whose ids have that sum; keys are `{"id":123}`."""
    keys = ds.dataset(files, partitioning="hive", exclude_invalid_files=False).to_table(["key"])["key"]
    found = len(keys), pc.sum(pc.cast(pc.utf8_slice_codeunits(keys, 6, -1), "int64")).as_py()
    if found != (rows, ids):
        raise SystemExit(f"the files hold {found[0]} records with ids summing up to {found[1]}, not {rows} and {ids}")


def measured(
    course: Course, content: dict[str, Any], folder: Path, kind: str = "backlog", python: str = sys.executable
) -> Result:
    """A pipeline over the backlog, in a process of its own; the sink counts its events."""
    server = measure.Tree(workload.pid(course.server))
    task = {"content": content, "folder": str(folder), "kind": kind}
    with reader(task, python) as process, measure.Tree(process.pid) as tree:
        tell(process, "go")
        expect(process, "STREAMING")
        before, server_before = tree.cpu(), server.cpu()
        said = answer(process)
        cpu, server_cpu = tree.cpu() - before, server.cpu() - server_before
    if said["rows"] != course.backlog.rows:
        raise SystemExit(f"Tailrace read {said}; there are {course.backlog}")
    return Result(said["rows"], said["seconds"], cpu, server_cpu, tree.peak, dict(tree.peaks))


@contextmanager
def reader(task: dict[str, Any], python: str = sys.executable) -> Iterator[subprocess.Popen[str]]:
    """A reader's process that is ready; told to end when the `with` does."""
    command = [python, str(Path(__file__).with_name("reader.py"))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        tell(process, json.dumps(task))
        expect(process, "READY")
        yield process
    finally:
        process.communicate()


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Writes a line to a reader."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def expect(process: subprocess.Popen[str], line: str) -> None:
    """Waits for a line of a reader."""
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said != line:
        raise SystemExit(f"the reader said {said!r} instead of {line}; its error stands above")


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """A reader's result."""
    assert process.stdout is not None
    said = process.stdout.readline()
    if not said:
        raise SystemExit("the reader ended without a result; its error stands above")
    result: dict[str, Any] = json.loads(said)
    return result


def debezium(course: Course, slot: str) -> Result:
    """The engine that TAILRACE_REFERENCE names; it counts its events, from the first to the last."""
    server, before = measure.Tree(workload.pid(course.server)), measure.ended_children()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"name": "bench", "config": course.properties(slot)}, config)
        config.flush()
        command = [reference() or "", "--config", config.name, "--count-only", "--max-events", str(course.backlog.rows)]
        # Its warnings are of metrics that it cannot keep up with, thousands a second.
        quiet = {**os.environ, "LOG_LEVEL": "error"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)
        with measure.Tree(process.pid) as tree:
            expect(process, "STREAMING")
            start_cpu, server_before = tree.cpu(), server.cpu()
            said, _ = process.communicate(timeout=MOST_SECONDS)
    found = re.search(r"events=(\d+) seconds=([\d.]+)", said)
    if process.returncode or found is None:
        raise SystemExit(f"the engine ended with {process.returncode}: {said}")
    if int(found[1]) != course.backlog.rows:
        raise SystemExit(f"the engine read {found[1]} rows; there are {course.backlog.rows}")
    cpu = measure.ended_children() - before - start_cpu
    return Result(int(found[1]), float(found[2]), cpu, server.cpu() - server_before, tree.peak, dict(tree.peaks))


def reference() -> str | None:
    """The program that runs the engine, None where there is none."""
    folder = os.environ.get("TAILRACE_REFERENCE")
    return str(Path(folder) / "run.sh") if folder else None


def contestants(*, encode_alone: bool = False) -> dict[str, Callable[[Course, str], Result]]:
    """Who runs, by the name that the table shows; or those alone that encode events and discard them."""
    found: dict[str, Callable[[Course, str], Result]]
    found = {
        "pg_recvlogical": recvlogical,
        "tailrace, null": tailrace_null,
        "tailrace, rows": tailrace_rows,
        "tailrace, parquet": tailrace_parquet,
    }
    if encode_alone:
        found = {"tailrace, null": tailrace_null}
    return {**found, "debezium engine": debezium} if reference() else found
