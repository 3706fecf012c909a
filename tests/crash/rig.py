"""A pipeline, by default into a replica, that can be killed anywhere, and a watch over what must hold all the time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import psycopg
import yaml

from tailrace.connectors.postgres.position import format_lsn, parse_lsn
from tailrace.errors import SinkError
from tailrace.pipeline.checkpoint import position
from tailrace.sinks.replica.target import read_table
from tailrace.testing.postgres import PostgresServer

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run", "--json"]
# With and without Spark trying a failed task again.
MASTERS = ("local[2]", "local[2,4]")
# A JVM that lives for seconds spends most of them on optimising its code.
QUICK_JAVA = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
PATIENCE_S = 300


class Rig:
    """One database, one checkpoint, one replica. `start` runs the pipeline; whoever waits restarts it when it died."""

    def __init__(self, server: PostgresServer, database: str, folder: Path) -> None:
        self.server, self.database, self.folder = server, database, folder
        self.failpoint = folder / "failpoint"
        self.slot = f"slot_{database}"
        self.properties: dict[str, str] = {}
        self.sink: dict[str, Any] = {"replica": {"path": "replica"}}
        self.more: dict[str, Any] = {}
        self.starts = 0
        self.masters = cycle(MASTERS)
        self._process: subprocess.Popen[bytes] | None = None
        self._watch = Watch(self)

    def connect(self) -> psycopg.Connection[Any]:
        """A connection that commits each statement."""
        return self.server.connect(self.database)

    def start(self) -> None:
        """Run the pipeline, in a process group of its own, after what is left of the run before."""
        self.kill()
        self.starts += 1
        with (self.folder / "run.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*COMMAND, str(self._definition())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "TAILRACE_FAILPOINT": str(self.failpoint)},
            )
        if not self._watch.is_alive():
            self._watch.start()

    def arm(self, place: str, nth: int, *, driver: bool) -> None:
        """Kill at the nth passage of a place from now on: the driver with its JVM, or the process that passes alone."""
        assert self._process is not None
        self._arm(place, nth, str(self._process.pid if driver else 0))

    def arm_stop(self, place: str, nth: int = 1) -> None:
        """Stop the process that passes a place for the nth time from now on, with SIGSTOP."""
        self._arm(place, nth, "stop")

    def _arm(self, place: str, nth: int, how: str) -> None:
        draft = self.failpoint.with_suffix(".draft")
        draft.write_text(f"{place} {nth} {how}", encoding="utf-8")
        draft.rename(self.failpoint)

    def await_kill(self) -> None:
        """Wait until the armed place was reached."""
        self._until(lambda: not self.failpoint.exists(), "nobody came to the failpoint", restart=False)

    def orphaned(self) -> psutil.Process:
        """The stopped Python worker, once the rest of the run is killed."""
        self.await_kill()
        worker = psutil.Process(int(self.failpoint.with_suffix(".stopped").read_text(encoding="utf-8")))
        self.kill()
        return worker

    def await_batches(self, count: int) -> None:
        """Wait until so many more micro-batches are committed."""
        wanted = self._committed() + count
        self._until(lambda: self._committed() >= wanted, f"batch {wanted} is not committed")

    def await_all_read(self) -> None:
        """Wait until all that the source has written by now is committed by Spark."""
        with self.connect() as connection:
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert row is not None
        end = parse_lsn(row[0])
        self._until(lambda: self._committed_lsn() >= end, f"the log is not read up to {format_lsn(end)}")

    def await_(self, done: Callable[[], bool], complaint: str) -> None:
        """Wait for a condition."""
        self._until(done, complaint)

    def kill(self) -> None:
        """End the driver's process group by SIGKILL."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def await_planned(self) -> None:
        """Wait until the first micro-batch is planned: its offset is stored."""
        self._until(lambda: position(str(self.checkpoint)).planned is not None, "nothing is planned", restart=False)

    def await_slot(self) -> None:
        """Wait until the slot exists and is ready."""
        query = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND confirmed_flush_lsn IS NOT NULL"
        with self.connect() as connection:
            found = lambda: connection.execute(query, [self.slot]).fetchone() is not None  # noqa: E731
            self._until(found, "there is no slot", restart=False)

    def ended(self) -> tuple[int, str]:
        """Wait until the run ends by itself: its exit code, and the end of its output."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S), self._output()

    def lose_newest(self) -> None:
        """Take the files of the last micro-batch planned from the checkpoint, as a power failure may."""
        planned = position(str(self.checkpoint)).planned
        assert planned is not None
        if planned.number == 0:  # there would be nothing left
            return
        for folder in ("offsets", "commits"):
            (self.checkpoint / folder / str(planned.number)).unlink(missing_ok=True)

    def close(self) -> None:
        """End everything."""
        self._watch.ended.set()
        self.kill()
        if self._watch.is_alive():
            self._watch.join()

    def walsender(self) -> int:
        """The process of the server that streams the slot, once there is one."""
        pids: list[int] = []

        def found() -> bool:
            with self.connect() as connection:
                rows = connection.execute(
                    "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s AND active", [self.slot]
                ).fetchall()
            pids.extend(row[0] for row in rows)
            return bool(pids)

        self._until(found, "nobody reads the slot")
        return pids[-1]

    def reader_process(self) -> int:
        """The process that holds the slot for the pipeline's workers, once there is one."""
        pids: list[int] = []

        def found() -> bool:
            pids.extend(process.pid for process in psutil.process_iter() if self._is_reader(process))
            return bool(pids)

        self._until(found, "there is no reader process")
        return pids[-1]

    def _is_reader(self, process: psutil.Process) -> bool:
        assert self._process is not None
        try:
            return os.getsid(process.pid) == self._process.pid and "reader_process" in " ".join(process.cmdline())
        except (psutil.Error, ProcessLookupError):
            return False

    def check(self, *tables: str) -> None:
        """Every table's replica has exactly the source's rows, and the slot was never ahead of Spark."""
        assert self._watch.looks, "nobody has watched the slot"
        assert not self._watch.wrong, "\n".join(self._watch.wrong)
        for table in tables:
            source, replica = self._source_rows(table), self.replica_rows(table)
            missing, ghosts = source - replica, replica - source
            assert not missing + ghosts, f"{table}: missing {_few(missing)}, too much {_few(ghosts)}"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.folder / "state"

    def _definition(self) -> Path:
        properties = {
            **self.server.properties(self.database),
            "topic.prefix": "crash",
            "slot.name": self.slot,
            "publication.name": "crash",
            "maxBytesPerTrigger": "200000",
            "retriable.restart.connector.wait.ms": "1000",
            **self.properties,
        }
        content = {
            "name": "crash",
            "source": {"config": properties},
            "sink": self.sink,
            "checkpoint": "state",
            "trigger": "200ms",
            "spark": {"spark.master": next(self.masters), "spark.sql.shuffle.partitions": 2, **QUICK_JAVA},
            **self.more,
        }
        file = self.folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return file

    def _until(self, done: Callable[[], bool], complaint: str, *, restart: bool = True) -> None:
        """Wait for a condition, starting the pipeline again whenever it has ended meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert self._process is not None
            if restart and self._process.poll() is not None:
                self.start()
            assert time.monotonic() < deadline, f"{complaint}; the end of its output:\n{self._output()}"
            time.sleep(0.05)

    def _committed(self) -> int:
        committed = position(str(self.checkpoint)).committed
        return -1 if committed is None else committed.number

    def _committed_lsn(self) -> int:
        committed = position(str(self.checkpoint)).committed
        lsn = None if committed is None else committed.offset["position"]
        return -1 if lsn is None else parse_lsn(lsn)

    def _source_rows(self, table: str) -> Counter[tuple[Any, ...]]:
        with self.connect() as connection:
            return Counter(connection.execute(f"SELECT * FROM {table}".encode()).fetchall())

    def replica_rows(self, table: str) -> Counter[tuple[Any, ...]]:
        """The rows of a table's replica; none where there is no replica."""
        try:
            rows = read_table(str(self.folder / "replica"), f"public.{table}")
        except SinkError:
            return Counter()
        return Counter(tuple(row.values()) for row in rows.to_pylist())

    def _output(self) -> str:
        lines = (self.folder / "run.log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-25:])


class Watch(threading.Thread):
    """Looks all the time whether the server was told of a position that Spark has not committed."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(daemon=True)
        self.rig = rig
        self.ended = threading.Event()
        self.wrong: list[str] = []
        self.looks = 0
        self._begun: int | None = None

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                with self.rig.connect() as connection:
                    while not self.ended.wait(0.05):
                        self._look(connection)
            except psycopg.OperationalError:  # noqa: PERF203  # the server is away for a moment
                self.ended.wait(0.2)

    def _look(self, connection: psycopg.Connection[Any]) -> None:
        # The slot first: what Spark commits in between is in its favour, never against it.
        row = connection.execute(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s", [self.rig.slot]
        ).fetchone()
        committed = position(str(self.rig.checkpoint)).committed
        if row is None or row[0] is None or committed is None:
            return
        self.looks += 1
        confirmed, lsn = parse_lsn(row[0]), committed.offset["position"]
        if lsn is None:  # the log begins where the slot stands, so nothing may move it
            self._begun = self._begun or confirmed
            if confirmed != self._begun:
                self.wrong.append(f"the slot moved from {format_lsn(self._begun)} to {row[0]} before its log was read")
        elif confirmed > parse_lsn(lsn):
            self.wrong.append(f"confirmed {row[0]}, committed only {json.dumps(committed.offset)}")


def _few(rows: Counter[tuple[Any, ...]]) -> str:
    shown = [str(row)[:120] for row in list(rows.elements())[:3]]
    return f"{rows.total()} {shown}"
