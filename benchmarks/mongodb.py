"""Change streams of MongoDB: Tailrace, a Debezium engine and a bare loop over raw batches read one backlog.

`python benchmarks/mongodb.py [--rows N] [--times N] [--json FILE]`. The engine runs if TAILRACE_REFERENCE names it, see
README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
from contestants import MOST_SECONDS, Result, answer, expect, reader, reference, tell

sys.path.insert(0, str(Path(__file__).parents[1]))

from tailrace.connectors.mongodb.position import end_of, start_options
from tailrace.connectors.mongodb.snapshot.reads import cluster_time
from tests.servers.mongodb.server import Client, ReplicaSet

DATABASE, COLLECTION = "bench", "items"
AT_ONCE = 1000


@dataclass(frozen=True)
class Course:
    """The server, and where in its log the backlog lies."""

    servers: ReplicaSet
    rows: int
    start: int

    @property
    def server(self) -> measure.Tree:
        """The server's process."""
        return measure.Tree(self.servers.members[0].pid)

    def properties(self) -> dict[str, str]:
        """A Debezium config that reads the backlog: events without schemas, no snapshot."""
        return {
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "mongodb.connection.string": self.servers.url(),
            "topic.prefix": "bench",
            "database.include.list": DATABASE,
            "snapshot.mode": "no_data",
            "capture.start.op.time": str(self.start),
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }


def backlog(client: Client, rows: int) -> int:
    """Write the documents; returns the cluster time before them."""
    start = cluster_time(client)
    items = client[DATABASE][COLLECTION]
    for first in range(0, rows, AT_ONCE):
        items.insert_many([_document(number) for number in range(first, min(first + AT_ONCE, rows))])
    return start + 1


def _document(number: int) -> dict[str, Any]:
    return {
        "_id": number,
        "group": number % 100,
        "name": f"item {number}",
        "price": number / 7,
        "active": number % 2 == 0,
        "tags": ["a", "b", f"t{number % 10}"],
        "place": {"street": f"Street {number}", "zip": str(10000 + number % 1000)},
        "note": "x" * 40,
    }


def bare(course: Course) -> Result:
    """The change stream's answers, not looked into: what the server and the driver take."""
    server = course.server
    with course.servers.client() as client:
        own, server_before, begin = time.process_time(), server.cpu(), time.monotonic()
        for _ in _answers(client, course.start, end_of(cluster_time(client))):
            pass
        seconds, cpu = time.monotonic() - begin, time.process_time() - own
    return Result(course.rows, seconds, cpu, server.cpu() - server_before, 0, {})


def _answers(client: Client, start: int, end: str) -> Iterator[bytes]:
    from bson.codec_options import CodecOptions
    from bson.raw_bson import RawBSONDocument

    raw: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
    stage = {"allChangesForCluster": True, "fullDocument": "updateLookup", **start_options(end_of(start - 1))}
    match = {"$match": {"ns.db": DATABASE}}
    with client.start_session() as session:
        command: dict[str, Any] = {"aggregate": 1, "pipeline": [{"$changeStream": stage}, match], "cursor": {}}
        answer = client.admin.command(command, codec_options=raw, session=session)
        while answer["cursor"]["postBatchResumeToken"]["_data"] < end:
            yield bytes(answer.raw)
            more = {"getMore": answer["cursor"]["id"], "collection": "$cmd.aggregate", "maxTimeMS": 100}
            if answer["cursor"].get("nextBatch", [1]) == []:
                return
            answer = client.admin.command(more, codec_options=raw, session=session)


def tailrace(course: Course) -> Result:
    """Tailrace into Spark's null sink: every event encoded, none kept. Spark counts the rows."""
    server = course.server
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        content = {
            "name": "bench",
            "source": {"connector": "mongodb", "config": course.properties()},
            "sink": {"null": {}},
            "checkpoint": "checkpoint",
            "trigger": "availableNow",
        }
        task = {"content": content, "folder": folder, "kind": "backlog"}
        with reader(task) as process, measure.Tree(process.pid) as tree:
            tell(process, "go")
            expect(process, "STREAMING")
            before, server_before = tree.cpu(), server.cpu()
            said = answer(process)
            cpu, server_cpu = tree.cpu() - before, server.cpu() - server_before
    if said["rows"] != course.rows:
        raise SystemExit(f"Tailrace read {said}; there are {course.rows}")
    return Result(said["rows"], said["seconds"], cpu, server_cpu, tree.peak, dict(tree.peaks))


def debezium(course: Course) -> Result:
    """The engine that TAILRACE_REFERENCE names; it counts its events, from the first to the last."""
    server, before = course.server, measure.ended_children()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"name": "bench", "config": course.properties()}, config)
        config.flush()
        command = [reference() or "", "--config", config.name, "--count-only", "--max-events", str(course.rows)]
        quiet = {**os.environ, "LOG_LEVEL": "error"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)
        with measure.Tree(process.pid) as tree:
            expect(process, "STREAMING")
            start_cpu, server_before = tree.cpu(), server.cpu()
            said, _ = process.communicate(timeout=MOST_SECONDS)
    found = re.search(r"events=(\d+) seconds=([\d.]+)", said)
    if process.returncode or found is None or int(found[1]) != course.rows:
        raise SystemExit(f"the engine ended with {process.returncode}: {said}")
    cpu = measure.ended_children() - before - start_cpu
    return Result(int(found[1]), float(found[2]), cpu, server.cpu() - server_before, tree.peak, dict(tree.peaks))


def main() -> None:
    """Measure all in turn, several times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    who: dict[str, Callable[[Course], Result]] = {"bare loop": bare, "tailrace, null": tailrace}
    if reference():
        who["debezium engine"] = debezium
    results: dict[str, list[Result]] = {name: [] for name in who}
    with ReplicaSet(options={"oplogSize": "2048"}) as servers:
        with servers.client() as client:
            course = Course(servers, given.rows, backlog(client, given.rows))
        for _ in range(given.times):
            for name, run in who.items():
                results[name].append(run(course))
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


if __name__ == "__main__":
    main()
