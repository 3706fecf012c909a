"""The process that holds a slot for an executor's Python workers: no needless reconnects, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour import own_session
from tests.conftest import Database

STARTED = "received replication command: START_REPLICATION SLOT"
SNAPSHOT_ROWS = 4000
TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, note text)",
    "CREATE TABLE b (id int PRIMARY KEY, note text)",
    f"INSERT INTO a SELECT -n, repeat('x', 20) FROM generate_series(1, {SNAPSHOT_ROWS // 2}) n",
    f"INSERT INTO b SELECT -n, repeat('x', 20) FROM generate_series(1, {SNAPSHOT_ROWS // 2}) n",
)
pytestmark = pytest.mark.timeout(600)  # programs of their own, each with a JVM, on a machine that may be busy


@pytest.fixture(scope="module")
def logging_server() -> Iterator[EmbeddedPostgres]:
    """A server whose log names each connection and each start of a stream."""
    with EmbeddedPostgres(18, settings={"log_replication_commands": "on", "log_connections": "on"}) as server:
        yield server


@pytest.fixture
def shop(logging_server: EmbeddedPostgres) -> Iterator[Database]:
    """A database with two tables, so that the snapshot keeps two workers busy, which Spark then hands out in turn."""
    logging_server.create_database("shop")
    database = Database(logging_server, "shop")
    database.execute(*TABLES)
    logging_server.log.write_bytes(b"")
    yield database
    logging_server.drop_database("shop")


@dataclass
class Traffic:
    """Inserts into both tables in turn, until it is left."""

    database: Database
    ended: threading.Event = field(default_factory=threading.Event)
    rows: int = 0

    def __enter__(self) -> Traffic:
        self.thread = threading.Thread(target=self._write)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _write(self) -> None:
        with self.database.connect() as connection:
            while not self.ended.wait(0.01):
                table = "ab"[self.rows // 20 % 2]
                statement = f"INSERT INTO {table} SELECT n, 'y' FROM generate_series(%s::int, %s::int) n"
                connection.execute(statement.encode(), [self.rows + 1, self.rows + 20])
                self.rows += 20


@dataclass
class Program:
    """A user's program that runs."""

    process: subprocess.Popen[str]

    def does(self, command: str) -> str:
        """The answer to a command."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        assert said, f"the program ended instead of doing {command!r}"
        return said.strip()

    def processes(self, *parts: str) -> list[psutil.Process]:
        """The program's processes with these parts in their command lines, oldest first."""
        found = [process for process in psutil.process_iter() if self._is(process, parts)]
        return sorted(found, key=lambda process: process.create_time())

    def _is(self, process: psutil.Process, parts: tuple[str, ...]) -> bool:
        try:
            command = " ".join(process.cmdline())
            return os.getsid(process.pid) == self.process.pid and all(part in command for part in parts)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False

    @property
    def readers(self) -> list[psutil.Process]:
        return self.processes("reader_process import main")


@contextmanager
def program(database: Database, folder: Path, master: str = "local[2]") -> Iterator[Program]:
    """A user's program, whose process group ends with the test."""
    options = {**database.properties, "topic.prefix": "t", "slot.name": "shop", "publication.name": "shop"}
    given = {"master": master, "options": options, "checkpoint": str(folder / "state")}
    command = [sys.executable, own_session.__file__, json.dumps(given)]
    with (
        (folder / "program.log").open("a") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        ) as process,
    ):
        try:
            yield Program(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def logged(database: Database, part: str) -> int:
    """How many lines of the server's log have this part."""
    assert isinstance(database.server, EmbeddedPostgres)
    return database.server.log.read_text(errors="replace").count(part)


def holder(database: Database) -> int | None:
    """The server's process that streams the slot."""
    with database.connect() as connection:
        row = connection.execute("SELECT active_pid FROM pg_replication_slots WHERE slot_name = 'shop'").fetchone()
    return None if row is None else row[0]


@pytest.mark.crash
def test_a_slot_is_connected_once_whatever_the_load(shop: Database, tmp_path: Path) -> None:
    """In a user's own session: two snapshot tasks leave two workers, which Spark hands out in turn."""
    with program(shop, tmp_path) as running:
        with Traffic(shop) as traffic:
            for load in ("load alone 6", "load two 4", "load four 4", "load alone 6"):
                running.does(load)
        for _ in range(6):  # hardly anything to read
            shop.execute("SELECT pg_current_xact_id()")
            running.does("load alone 1")
        keys, rows = map(int, running.does("drain").split())
        assert keys == rows == SNAPSHOT_ROWS + traffic.rows
        assert logged(shop, STARTED) == 1
        # Each of the two workers looks at the tables once.
        assert logged(shop, "application_name=tailrace catalog") <= 4


@pytest.mark.long
def test_a_reader_process_that_is_killed_is_started_again(shop: Database, tmp_path: Path) -> None:
    """It, the daemon of the workers that it ends with, and a worker, killed under traffic: every row comes, once."""
    with program(shop, tmp_path) as running:
        with Traffic(shop) as traffic:
            running.does("load alone 3")
            for _ in range(2):
                (reader,) = running.readers
                reader.kill()
                running.does("load alone 3")
                assert reader not in running.readers
            (reader,) = running.readers
            daemon = running.processes("pyspark.daemon", "pyspark.worker")[0]
            daemon.kill()
            until(lambda: reader not in running.readers)
            running.does("load alone 3")
        keys, rows = map(int, running.does("drain").split())
        assert keys == rows == SNAPSHOT_ROWS + traffic.rows
        assert len(running.readers) == 1


@pytest.mark.long
def test_a_slot_is_released_when_its_query_has_stopped(shop: Database, tmp_path: Path) -> None:
    """The session goes on, and so do its Python workers."""
    with program(shop, tmp_path) as running:
        running.does("drain")
        shop.execute("INSERT INTO a VALUES (1, 'y')")
        running.does("drain")
        until(lambda: holder(shop))
        # Longer than a reader process waits before it asks whether the query still runs, though the server's own
        # entries in the log make a micro-batch now and then.
        time.sleep(25)
        assert logged(shop, STARTED) == 1
        assert holder(shop)
        running.does("stop")
        until(lambda: holder(shop) is None)
        until(lambda: not running.readers)


@pytest.mark.crash
@pytest.mark.parametrize("victims", [("java",), ("java", "pyspark.daemon")])
def test_no_reader_process_outlives_its_executor(shop: Database, tmp_path: Path, victims: tuple[str, ...]) -> None:
    with program(shop, tmp_path) as running:
        shop.execute("INSERT INTO a VALUES (1, 'y')")
        running.does("drain")
        shop.execute("INSERT INTO a VALUES (2, 'y')")
        running.does("drain")
        (reader,) = running.readers
        assert holder(shop)
        for process in [found for victim in victims for found in running.processes(victim)]:
            process.kill()
        until(lambda: not reader.is_running())
        until(lambda: holder(shop) is None)
