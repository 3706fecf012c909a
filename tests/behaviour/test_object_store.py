"""Checkpoint and replica in an object store, here a server that speaks S3: one run, kills, commands, no secrets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.connectors.locations import located
from tailrace.connectors.signal import Signal
from tailrace.errors import OffsetError, SinkError
from tailrace.pipeline.checkpoint import SparkAloneError, position
from tailrace.sinks.replica.sink import read_table
from tailrace.snapshot import channels
from tests.behaviour.streams import properties
from tests.conftest import Database
from tests.servers.s3.server import SECRET, S3Server

RUN = [sys.executable, "-c", "from tailrace.cli.main import main; main()"]
PATIENCE = 240


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def keys(store: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The store, whose address and keys are in the environment."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store


def put(store: S3Server, files: dict[str, str]) -> None:
    system, root = located(f"s3a://{store.bucket}")
    for name, content in files.items():
        with system.open_output_stream(f"{root}/{name}") as stream:
            stream.write(content.encode())


def checkpoint(name: str, committed: int) -> dict[str, str]:
    """The files of a checkpoint of two micro-batches."""
    offsets = {f"{name}/offsets/{n}": f'v1\n{{}}\n{{"phase":"stream","position":"0/{n}"}}' for n in range(2)}
    commits = {f"{name}/commits/{n}": 'v1\n{"nextBatchWatermarkMs":0}' for n in range(committed + 1)}
    return {**offsets, **commits, f"{name}/metadata": '{"id":"q"}'}


def test_commands_read_a_checkpoint_by_the_name_that_hadoop_has(keys: S3Server) -> None:
    put(keys, checkpoint("read", 0))
    found = position("s3a://lake/read")
    assert (found.planned.number, found.committed.number) == (1, 0)  # type: ignore[union-attr]
    put(keys, {"read/offsets/1": "v1"})
    with pytest.raises(OffsetError, match="is cut short"):
        position("s3a://lake/read")


def test_signals_come_by_files_of_a_store(keys: S3Server) -> None:
    folder = f"s3a://{keys.bucket}/signals"
    channels.send(folder, Signal("1", "log", '{"message": "hello"}'))
    place = channels._Folder(folder, lambda name: name.endswith(".json"))
    ((name, text),) = place.take(())
    assert '"hello"' in text
    assert place.take((name,)) == []
    assert not [key for key in keys.keys("signals/") if not key.endswith("/")], "what is done is removed"


@pytest.mark.long
def test_a_store_without_keys_is_said_with_what_is_missing(keys: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(SparkAloneError, match="AWS_ACCESS_KEY_ID"):
        position("s3a://lake/read")
    place = channels._Folder("s3a://lake/signals", lambda name: True)
    assert place.take(()) == []
    begun = time.monotonic()
    assert place.take(()) == []
    assert time.monotonic() - begun < 1, "micro-batches do not wait for it each time"


class Line:
    """A pipeline file whose checkpoint and replica are in the store, and the processes that run it."""

    def __init__(self, store: S3Server, database: Database, folder: Path, sink: str = "delta") -> None:
        self.store, self.folder, self.name, self.sink = store, folder, database.name, sink
        self.log = folder / "run.log"
        content = {
            "name": "shop",
            "source": {"config": properties(database, maxBytesPerTrigger="50000")},
            "sink": self.sinks[sink],
            "checkpoint": f"s3a://{store.bucket}/{database.name}/checkpoint",
            "trigger": "200ms",
            "spark": {"spark.master": "local[2]", "spark.sql.shuffle.partitions": 2, **store.spark},
        }
        self.file = folder / "pipeline.yaml"
        self.file.write_text(json.dumps(content))

    @property
    def sinks(self) -> dict[str, dict[str, Any]]:
        """The settings of each sink. Keys are in the environment, as a machine's role would be."""
        return {
            "delta": {"replica": {"path": self.root, "storage_options": {"AWS_ALLOW_HTTP": "true"}}},
            "iceberg": {"replica": {"format": "iceberg", "namespace": "lake", "catalog": self.catalog}},
            "json": {"json": {"path": f"s3a://{self.store.bucket}/{self.name}/files"}},
        }

    @property
    def root(self) -> str:
        """The root of the replica's Delta tables."""
        return f"s3://{self.store.bucket}/{self.name}/replica"

    @property
    def catalog(self) -> dict[str, str]:
        """The catalog of Iceberg tables that lie in the store."""
        warehouse = f"s3://{self.store.bucket}/{self.name}/warehouse"
        place = {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": warehouse}
        # pyiceberg takes no endpoint from the environment.
        return {**place, "s3.endpoint": self.store.url}

    def start(self) -> subprocess.Popen[bytes]:
        """A run, in a process group of its own."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*RUN, "run", "--json", str(self.file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def tell(self, *arguments: str) -> tuple[int, str]:
        """A command's exit code, and what it prints."""
        done = subprocess.run([*RUN, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stdout + done.stderr

    def rows(self) -> list[dict[str, Any]]:
        """The replica's rows."""
        place = (self.root, self.store.storage_options) if self.sink == "delta" else ("iceberg://lake", self.catalog)
        try:
            found = read_table(place[0], "public.t", place[1]).to_pylist()
        except SinkError:  # there is no table yet
            return []
        return sorted(found, key=lambda row: row["id"])

    def lines(self) -> list[str]:
        """The records of the files that Spark's file log lists."""
        system, _ = located(f"s3a://{self.store.bucket}")
        prefix = f"{self.name}/files/"
        text = lambda key: system.open_input_stream(f"{self.store.bucket}/{key}").read().decode()  # noqa: E731
        logs = [text(key) for key in self.store.keys(f"{prefix}_spark_metadata/") if not key.endswith((".tmp", "/"))]  # type: ignore[no-untyped-call]
        files = {json.loads(line)["path"] for log in logs for line in log.splitlines()[1:]}
        return [line for file in files for line in text(prefix + file.rpartition("/")[2]).splitlines()]  # type: ignore[no-untyped-call]

    def until(self, condition: Any) -> None:
        """Wait for a condition."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.log.read_text()[-4000:]
            time.sleep(0.2)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a run with its Java and its workers, as a machine that fails does."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_a_pipeline_killed_in_an_object_store_resumes(
    keys: S3Server, database: Database, tmp_path: Path, sink: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO t SELECT n, 'first' FROM generate_series(1, 500) n")
    line = Line(keys, database, tmp_path, sink)
    process = line.start()
    try:
        line.until(lambda: len(line.rows()) == 500)
        code, told = line.tell("run", "--once", str(line.file))
        assert (code != 0, "the checkpoint is in use by" in told) == (True, True), told
        for round_ in range(3):
            before = 500 * (round_ + 1)
            database.execute(
                f"UPDATE t SET v = '{round_}' WHERE id % 3 = {round_}",
                f"INSERT INTO t SELECT n, repeat('x', 200) FROM generate_series({before + 1}, {before + 500}) n",
                f"DELETE FROM t WHERE id = {round_ + 1}",
            )
            line.until(lambda before=before: any(row["id"] > before for row in line.rows()))
            kill(process)
            process = line.start()
        line.until(lambda: line.tell("status", str(line.file))[0] == 0)
        database.execute("INSERT INTO t VALUES (9999, 'last')")
        with database.connect() as connection:
            wanted = [{"id": id_, "v": v} for id_, v in connection.execute("SELECT id, v FROM t ORDER BY id")]
        line.until(lambda: line.rows() == wanted)
        _, told = line.tell("status", str(line.file))
        assert "running" in told
        assert SECRET not in line.log.read_text() + told
    finally:
        kill(process)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_files_of_a_killed_pipeline_in_an_object_store(keys: S3Server, database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 300)")
    line = Line(keys, database, tmp_path, "json")
    process = line.start()
    try:
        line.until(lambda: len(line.lines()) == 300)
        for first in (301, 601):
            database.execute(f"INSERT INTO t SELECT generate_series({first}, {first + 299})")
            line.until(lambda first=first: len(line.lines()) >= first)
            kill(process)
            process = line.start()
        line.until(lambda: len(line.lines()) >= 900)
        found = sorted(json.loads(text)["key"]["payload"]["id"] for text in line.lines())
        assert found == list(range(1, 901))
    finally:
        kill(process)
