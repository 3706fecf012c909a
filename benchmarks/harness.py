"""Runs the contestants of a database in turn: a bare loop over the driver, Tailrace, and a Debezium engine.

What a database adds is a Course. The engine runs if TAILRACE_REFERENCE names it, see README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import measure
from contestants import MOST_SECONDS, Result, answer, expect, reader, reference, tell


class Course(Protocol):
    """A server with a backlog of `rows` changes."""

    connector: str
    rows: int
    is_hidden: bool
    """Whether contestants begin before the backlog is shown; else their properties say where it begins."""
    is_snapshot: bool
    """Whether the backlog is the rows of a first snapshot: nothing is streamed then, and all starts count as CPU."""

    @property
    def server(self) -> measure.Tree:
        """The server's process."""

    def properties(self) -> dict[str, str]:
        """A Debezium config that reads the backlog: events without schemas, no snapshot."""

    def hide(self) -> None:
        """Before a contestant begins."""

    def show(self) -> None:
        """When a contestant streams."""

    def bare(self) -> Result:
        """Reads what Tailrace reads, by the driver alone."""


def tailrace(course: Course) -> Result:
    """Tailrace into its null sink: every event encoded, counted and discarded where it is read, as by the engine."""
    server = course.server
    course.hide()
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        content = {
            "name": "bench",
            "source": {"connector": course.connector, "config": course.properties()},
            "sink": {"null": {}},
            "checkpoint": "checkpoint",
            "trigger": "0ms" if course.is_hidden else "availableNow",
        }
        task = {"content": content, "folder": folder, "kind": "follow" if course.is_hidden else "backlog"}
        with reader(task) as process, measure.Tree(process.pid) as tree:
            tell(process, "go")
            # No contestant's start counts, where the first micro-batch has no rows: that of a snapshot has.
            if not course.is_snapshot:
                expect(process, "STREAMING")
            before, server_before = tree.cpu(), server.cpu()
            if course.is_snapshot:
                expect(process, "STREAMING")
            if course.is_hidden:
                course.show()
                tell(process, str(course.rows))
            said = answer(process)
            cpu, server_cpu = tree.cpu() - before, server.cpu() - server_before
    if said["rows"] != course.rows:
        raise SystemExit(f"Tailrace read {said}; there are {course.rows}")
    return Result(said["rows"], said["seconds"], cpu, server_cpu, tree.peak, dict(tree.peaks))


def debezium(course: Course) -> Result:
    """The engine that TAILRACE_REFERENCE names; it counts its events, from the first to the last."""
    server, before = course.server, measure.ended_children()
    course.hide()
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        history = {
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": f"{folder}/history.dat",
        }
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"name": "bench", "config": {**history, **course.properties()}}))
        command = [reference() or "", "--config", str(config), "--count-only", "--max-events", str(course.rows)]
        quiet = {**os.environ, "LOG_LEVEL": "error"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)
        with measure.Tree(process.pid) as tree:
            start_cpu, server_before = 0.0, server.cpu()
            if not course.is_snapshot:
                expect(process, "STREAMING")
                start_cpu, server_before = tree.cpu(), server.cpu()
            course.show()
            said, _ = process.communicate(timeout=MOST_SECONDS)
    found = re.search(r"events=(\d+) seconds=([\d.]+)", said)
    if process.returncode or found is None or int(found[1]) != course.rows:
        raise SystemExit(f"the engine ended with {process.returncode}: {said}")
    cpu = measure.ended_children() - before - start_cpu
    return Result(int(found[1]), float(found[2]), cpu, server.cpu() - server_before, tree.peak, dict(tree.peaks))


def arguments(description: str, *, rows: int = 200_000, snapshot: bool = False) -> argparse.Namespace:
    """Rows of the backlog, rounds, and the file for all measurements; with `snapshot` whether that is measured."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", type=Path)
    if snapshot:
        parser.add_argument("--snapshot", action="store_true", help="a first snapshot instead of the log")
    return parser.parse_args()


def run(course: Course, given: argparse.Namespace) -> None:
    """Measure all in turn, several times; print each and the medians."""
    who: dict[str, Callable[[Course], Result]] = {
        "bare loop": lambda course: course.bare(),
        "tailrace, null": tailrace,
    }
    if reference():
        who["debezium engine"] = debezium
    results: dict[str, list[Result]] = {name: [] for name in who}
    for _ in range(given.times):
        for name, contestant in who.items():
            results[name].append(contestant(course))
            _print(name, results[name][-1:])
    print("medians")
    for name, found in results.items():
        _print(name, found)
    if given.json:
        given.json.write_text(json.dumps({name: [each.to_json() for each in found] for name, found in results.items()}))


def _print(name: str, found: list[Result]) -> None:
    rate = statistics.median(each.rows / each.seconds for each in found)
    cpu = statistics.median(each.rows_a_cpu_second for each in found)
    peak = statistics.median(each.peak_bytes for each in found)
    print(f"{name:20} {rate:10,.0f} rows/s {cpu:10,.0f} rows/CPU-s {peak / 2**20:8,.0f} MB", flush=True)
