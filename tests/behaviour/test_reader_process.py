"""The process that holds a slot for all Python workers of an executor: nothing is connected anew, nothing is left."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour import own_session
from tests.conftest import Database

TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, note text)",
    "CREATE TABLE b (id int PRIMARY KEY, note text)",
    "INSERT INTO a SELECT -n, repeat('x', 20) FROM generate_series(1, 20000) n",
    "INSERT INTO b SELECT -n, repeat('x', 20) FROM generate_series(1, 20000) n",
)


@pytest.fixture(scope="module")
def logging_server() -> Iterator[EmbeddedPostgres]:
    """A server whose log names each connection and each start of a stream."""
    with EmbeddedPostgres(18, settings={"log_replication_commands": "on", "log_connections": "on"}) as server:
        yield server


@pytest.fixture
def shop(logging_server: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database with two tables, so that the snapshot keeps two workers busy."""
    logging_server.create_database("shop")
    database = Database(logging_server, "shop")
    database.execute(*TABLES)
    yield database
    logging_server.drop_database("shop")


@dataclass
class Traffic:
    """Inserts as fast as they go, into both tables in turn, until it is left."""

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
            while not self.ended.wait(0.005):
                table = "ab"[self.rows // 50 % 2]
                connection.execute(
                    f"INSERT INTO {table} SELECT n, 'y' FROM generate_series(%s::int, %s::int) n",
                    [self.rows + 1, self.rows + 50],
                )
                self.rows += 50


def options(database: Database) -> dict[str, str]:
    return {**database.properties, "topic.prefix": "t", "slot.name": "shop", "publication.name": "shop"}


@contextmanager
def program(
    database: Database, folder: Path, load: list[tuple[str, int]], master: str
) -> Iterator[subprocess.Popen[str]]:
    """A user's program; killed in the end, if it still runs."""
    given = {"master": master, "options": options(database), "checkpoint": str(folder / "state"), "load": load}
    command = [sys.executable, own_session.__file__, json.dumps(given)]
    with (
        (folder / "program.log").open("w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def until(process: subprocess.Popen[str], line: str) -> None:
    """Wait for a line of a program."""
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    raise AssertionError(f"the program ended before it said {line!r}")


def logged(server: EmbeddedPostgres, *parts: str) -> int:
    """How many lines of the server's log have all these parts."""
    return sum(all(part in line for part in parts) for line in server.log.read_text(errors="replace").splitlines())


def test_a_slot_is_connected_once_whatever_the_load(
    shop: Database, logging_server: EmbeddedPostgres, tmp_path: Path
) -> None:
    """In a user's own session: two snapshot tasks leave two workers, which Spark hands out in turn."""
    load = [("alone", 8), ("beside two tasks", 6), ("beside four tasks", 6), ("alone", 8)]
    with Traffic(shop), program(shop, tmp_path, load, "local[2]") as process:
        until(process, "end")
        assert logged(logging_server, "received replication command: START_REPLICATION SLOT") == 1
        process.communicate("\n\n", timeout=60)
