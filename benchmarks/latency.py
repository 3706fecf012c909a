"""Milliseconds from the client's insert to the row in `foreachBatch`, or in the engine's output, for each database.

`python benchmarks/latency.py [DATABASE...] [--seconds N] [--rate N]`. Single-row transactions, so many a second. A row
holds the time before it was sent, so that a commit's own time counts. The engine runs if TAILRACE_REFERENCE names it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import contestants
import mongodb
import sqlserver
import workload
from db2 import Db2Course
from mongodb import MongoCourse
from reader import SENT
from sqlserver import SqlServerCourse

from tailrace.testing.postgres import EmbeddedPostgres
from tests.servers.db2.server import Db2
from tests.servers.mongodb.server import ReplicaSet

WARM_UP_SECONDS, SETTLE_SECONDS = 10, 5

Insert = Callable[[int, int], object]
"""Inserts a row with a number and a time in microseconds."""
Source = tuple[str, dict[str, str], Insert]
"""A connector, its properties, and how to insert."""


@contextmanager
def postgres() -> Iterator[Source]:
    """PostgreSQL 18."""
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        server.create_database("bench")
        with server.connect("bench") as connection:
            connection.execute("CREATE TABLE items (id int PRIMARY KEY, sent bigint)")
            properties = {
                **server.properties("bench"),
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "plugin.name": "pgoutput",
                "slot.name": "tailrace",
            }
            insert = b"INSERT INTO items VALUES (%s, %s)"
            yield "postgres", properties, lambda number, sent: connection.execute(insert, [number, sent])


@contextmanager
def mongo() -> Iterator[Source]:
    """MongoDB, a replica set of one member."""
    with ReplicaSet() as servers, servers.client() as client:
        items = client[mongodb.DATABASE]["items"]
        items.insert_one({"_id": -1})
        properties = MongoCourse(servers, 0, 0, is_snapshot=True).properties()
        yield "mongodb", properties, lambda number, sent: items.insert_one({"_id": number, "sent": sent})


@contextmanager
def sql_server() -> Iterator[Source]:
    """SQL Server's stand-in."""
    with sqlserver.double() as (double, pid):
        double.execute("CREATE DATABASE bench")
        with closing(double.connect("bench")) as connection, connection.cursor() as cursor:
            cursor.execute("EXEC sys.sp_cdc_enable_db")
            cursor.execute("CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, sent bigint)")
            cursor.execute(
                "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'items', @role_name = NULL, "
                "@supports_net_changes = 0"
            )
            properties = SqlServerCourse(double, 0, is_snapshot=True, pid=pid).properties()
            yield (
                "sqlserver",
                properties,
                lambda number, sent: cursor.execute(f"INSERT INTO dbo.items VALUES ({number}, {sent})"),
            )


@contextmanager
def db2() -> Iterator[Source]:
    """Db2's stand-in."""
    with Db2() as server, server.session() as session:
        session.rows("CREATE SCHEMA BENCH")
        session.rows("CREATE TABLE BENCH.ITEMS (ID INTEGER NOT NULL PRIMARY KEY, SENT BIGINT)")
        server.capture(("BENCH", "ITEMS"))
        properties = Db2Course(server, 0, is_snapshot=True).properties()
        yield (
            "db2",
            properties,
            lambda number, sent: session.rows(f"INSERT INTO BENCH.ITEMS VALUES ({number}, {sent})"),
        )


SOURCES = {"postgres": postgres, "mongodb": mongo, "sqlserver": sql_server, "db2": db2}


def _trickle(insert: Insert, first: int, given: argparse.Namespace) -> tuple[int, int]:
    """Insert rows, so many a second; how many there are, and when those begin that count."""
    warm, count = int(given.rate * WARM_UP_SECONDS), int(given.rate * (WARM_UP_SECONDS + given.seconds))
    begin, counts = time.monotonic(), 0
    for number in range(count):
        time.sleep(max(0.0, begin + number / given.rate - time.monotonic()))
        now = time.time_ns() // 1000
        if number == warm:
            counts = now
        insert(first + number, now)
    return count, counts


def tailrace(source: Source, first: int, given: argparse.Namespace) -> list[tuple[int, int]]:
    """When each row was sent and seen, with a trigger of 0 ms."""
    connector, properties, insert = source
    own = {"topic.prefix": "bench", "snapshot.mode": "no_data"}
    content = {
        "name": "bench",
        "source": {"connector": connector, "config": {**properties, **own}},
        "sink": {"null": {}},
        "checkpoint": "checkpoint",
        "trigger": "0ms",
    }
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        task = {"content": content, "folder": folder, "kind": "sent"}
        with contestants.reader(task) as process:
            contestants.tell(process, "go")
            contestants.expect(process, "STREAMING")
            count, begin = _trickle(insert, first, given)
            contestants.tell(process, str(count))
            seen = contestants.answer(process)["seen"]
    return [(sent, came) for sent, came in seen if sent >= begin]


def debezium(source: Source, first: int, given: argparse.Namespace) -> list[tuple[int, int]]:
    """The same of the engine: when its line is in its output file."""
    _, properties, insert = source
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        work = Path(folder)
        own = {
            "topic.prefix": "bench",
            "snapshot.mode": "no_data",
            **({"slot.name": "engine"} if "slot.name" in properties else {}),
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(work / "history.dat"),
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }
        (work / "config.json").write_text(json.dumps({"name": "bench", "config": {**properties, **own}}))
        command = [contestants.reference() or "", "--config", str(work / "config.json"), "--output", str(work / "out")]
        command += ["--stop-file", str(work / "stop")]
        environment = {**os.environ, "LOG_LEVEL": "error"}
        seen: list[tuple[int, int]] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            contestants.expect(process, "STREAMING")
            over = threading.Event()
            watcher = threading.Thread(target=_watch, args=(work / "out", seen, over))
            watcher.start()
            _, begin = _trickle(insert, first, given)
            time.sleep(SETTLE_SECONDS)
            over.set()
            watcher.join()
            (work / "stop").touch()
            process.communicate()
    return [(sent, came) for sent, came in seen if sent >= begin]  # it may say STREAMING before it listens


def _watch(path: Path, seen: list[tuple[int, int]], over: threading.Event) -> None:
    """Note when lines are there."""
    rest = ""
    with path.open(encoding="utf-8") as file:
        while not over.is_set():
            *lines, rest = (rest + file.read()).split("\n")
            now = time.time_ns() // 1000
            seen += [(int(found[1]), now) for line in lines if (found := SENT.search(line))]
            time.sleep(0.002)


def main() -> None:
    """Measure the databases in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", default=list(SOURCES))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=int, default=100)
    given = parser.parse_args()
    who = {"tailrace": tailrace, **({"debezium engine": debezium} if contestants.reference() else {})}
    for database in given.databases:
        with SOURCES[database]() as source:
            for place, (name, contestant) in enumerate(who.items()):
                found = contestant(source, 1_000_000 * place, given)
                if len(found) != int(given.rate * given.seconds):
                    raise SystemExit(f"{name}, {database}: {len(found)} of {given.rate * given.seconds:.0f} rows came")
                waits = sorted((seen - sent) / 1000 for sent, seen in found)
                print(
                    f"{database:10} {name:16} median {statistics.median(waits):7,.0f} ms, "
                    f"p99 {waits[int(len(waits) * 0.99)]:7,.0f} ms, most {waits[-1]:7,.0f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
