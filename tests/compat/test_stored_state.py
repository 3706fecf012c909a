"""Pipelines that a release left unfinished resume: nothing is lost, and nothing is rewritten."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from deltalake import DeltaTable

from tailrace.errors import SinkError
from tailrace.pipeline.checkpoint import position
from tailrace.sinks.replica.target import read_table
from tailrace.testing.postgres import EmbeddedPostgres
from tests.compat.record import COMMAND, TABLES, fill_in

# By the signal of record.py.
ASKED_FOR = ("a", "b")
ARCHIVES = sorted(Path(__file__).parent.glob("*/state.tar.xz"))
LOG = "run.log"
WAIT_SECONDS = 200

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda archive: archive.parent.name)
def stored(request: pytest.FixtureRequest) -> Iterator[Stored]:
    """What a release stored, with the server it belongs to.

    The folder is none of pytest's: those are closed to the server's user, again by each pytest that starts meanwhile.
    """
    folder = Path(tempfile.mkdtemp(prefix="tailrace-stored-"))
    folder.chmod(0o755)
    try:
        with _server(request.param, folder) as server:
            yield Stored(server, folder)
    finally:
        shutil.rmtree(folder)


def _server(archive: Path, folder: Path) -> EmbeddedPostgres:
    """The server of an archive, unpacked into a folder."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    data = folder / "server"
    server = EmbeddedPostgres(18, data)
    if server._account is not None:
        for path in (data, *data.rglob("*")):
            shutil.chown(path, server._account.pw_uid, server._account.pw_gid)
    data.chmod(0o700)
    return server


class Stored:
    """The pipelines of one archive."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def rows(self, name: str, table: str) -> Counter[tuple[Any, ...]]:
        """The rows of a table of the source."""
        with self.server.connect(name) as connection:
            return Counter(connection.execute(f"SELECT * FROM {table}".encode()).fetchall())

    def replica(self, name: str, table: str) -> Counter[tuple[Any, ...]]:
        """The rows of a table's replica."""
        try:
            found = read_table(str(self.folder / name / "replica"), f"public.{table}")
        except SinkError:
            return Counter()
        return Counter(tuple(row.values()) for row in found.to_pylist())

    def commits(self, name: str, table: str) -> list[dict[str, Any]]:
        """The commits of a table's replica, the first one first."""
        uri = str(self.folder / name / "replica" / f"public.{table}")
        return [] if not DeltaTable.is_deltatable(uri) else DeltaTable(uri).history()[::-1]

    def resume(self, name: str) -> None:
        """Change every table, run the pipeline until each replica equals its table, and stop it."""
        with self.server.connect(name) as connection:
            changed(connection)
        fill_in(self.folder / name, self.server)
        with (self.folder / name / LOG).open("wb") as log:
            command = [*COMMAND, str(self.folder / name / "pipeline.yaml")]
            run = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "NO_COLOR": "1"})
        try:
            self._until(lambda: self._are_equal(name), run, name)
            self._until(lambda: self._is_done(name), run, name)
        finally:
            run.terminate()
            run.wait(60)

    def _until(self, done: Callable[[], bool], run: subprocess.Popen[bytes], name: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            log = (self.folder / name / LOG).read_text(encoding="utf-8")
            assert run.poll() is None, log
            assert time.monotonic() < deadline, log
            time.sleep(0.5)

    def _are_equal(self, name: str) -> bool:
        return all(self.replica(name, table) == self.rows(name, table) for table in TABLES)

    def _is_done(self, name: str) -> bool:
        """Whether the log is read, and no snapshot is under way."""
        committed = position(str(self.folder / name / "state")).committed
        assert committed is not None
        return committed.offset["phase"] == "stream" and not committed.offset["snapshots"]["queue"]


def changed(connection: psycopg.Connection[Any]) -> None:
    """What happens at the source before the pipeline is started again."""
    for table in TABLES:
        connection.execute(f"UPDATE {table} SET v = 'third ' || id WHERE id % 5 = 0".encode())
        connection.execute(f"DELETE FROM {table} WHERE id % 13 = 0".encode())
        connection.execute(f"INSERT INTO {table} SELECT n, 'third', n FROM generate_series(2001, 2040) n".encode())


def overwrites(commits: list[dict[str, Any]]) -> int:
    """How many commits replaced a table's content."""
    return sum("Overwrite" in str(commit.get("operationParameters", {}).get("mode")) for commit in commits)


@pytest.mark.long
def test_first_snapshot_resumes(stored: Stored) -> None:
    before = {table: stored.commits("snapshot", table) for table in TABLES}
    assert before["a"], "the first table was begun before"
    stored.resume("snapshot")
    for table in TABLES:
        commits = stored.commits("snapshot", table)
        assert commits[: len(before[table])] == before[table]
        # Each table is replaced once, when its first rows arrive.
        assert overwrites(commits) == 1, table


@pytest.mark.long
def test_incremental_snapshot_resumes(stored: Stored) -> None:
    before = {table: stored.commits("chunks", table) for table in TABLES}
    stored.resume("chunks")
    for table in TABLES:
        commits = stored.commits("chunks", table)
        assert commits[: len(before[table])] == before[table]
        # What the chunks of a whole table are read into takes the table's place, once.
        assert overwrites(commits) == overwrites(before[table]) + (table in ASKED_FOR), table
