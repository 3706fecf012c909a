"""A pipeline on Spark's own clusters: a standalone master with two workers, and `local-cluster`.

Killed executors and a killed run lose nothing. The processes share this machine and its file system, as the checkpoint
and the replica have to be shared by driver and executors.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pyspark
import pytest

from tests.behaviour.test_cli import records, tailrace, written
from tests.behaviour.test_stopping import first_batch, running, stderr_of, to_all
from tests.conftest import Database

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

HOME = Path(pyspark.__file__).parent
EXECUTOR = "CoarseGrainedExecutorBackend"
SUBMIT = Path(__file__).parents[2] / "deploy" / "spark-submit" / "standalone.sh"
ROWS = 20_000
START_SECONDS = 90


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def spark_class(folder: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A master or a worker of the package pyspark, whose output is in `folder`."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / f"{name}-{len(list(folder.iterdir()))}.txt").open("wb") as output:
        program = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name.lower()}.{name}", *arguments]
        process = subprocess.Popen(program, env=environment, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for(folder: Path, text: str, times: int = 1) -> None:
    deadline = time.monotonic() + START_SECONDS
    while sum(file.read_text(errors="replace").count(text) for file in folder.glob("*.txt")) < times:
        assert time.monotonic() < deadline, f"{text!r} is not logged"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master with two workers of one core each."""
    folder, port = tmp_path_factory.mktemp("spark"), free_port()
    address = f"spark://127.0.0.1:{port}"
    common = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        stack.enter_context(spark_class(folder, "Master", "--port", str(port), *common))
        wait_for(folder, "I have been elected leader")
        for _ in range(2):
            stack.enter_context(spark_class(folder, "Worker", "--cores", "1", "--memory", "1g", *common, address))
        wait_for(folder, "Registering worker", 2)
        yield address


@pytest.fixture(params=["standalone", "local-cluster"])
def master(request: pytest.FixtureRequest) -> str:
    if request.param == "local-cluster":
        return "local-cluster[2,1,1024]"
    return str(request.getfixturevalue("standalone"))


@pytest.fixture
def pipeline(database: Database, tmp_path: Path, master: str) -> Path:
    """A pipeline into JSON lines whose first snapshot has several splits."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text)",
        f"INSERT INTO orders SELECT n, 'item ' || n FROM generate_series(1, {ROWS}) n",
    )
    spark = {"spark.master": master, "spark.executor.memory": "512m", "spark.driver.memory": "1g"}
    return written(tmp_path, database, {"json": {"path": "out"}}, spark=spark)


def executors() -> list[psutil.Process]:
    every = psutil.process_iter(["cmdline"])
    return [process for process in every if any(EXECUTOR in part for part in process.info["cmdline"] or ())]


def keys(pipeline: Path) -> list[int]:
    return sorted(record["key"]["payload"]["id"] for record in records(pipeline.parent / "out"))


def test_snapshot_and_stream(database: Database, pipeline: Path) -> None:
    tailrace("run", pipeline, "--once")
    database.execute(f"INSERT INTO orders SELECT n, 'late' FROM generate_series({ROWS + 1}, {ROWS + 500}) n")
    tailrace("run", pipeline, "--once")
    assert keys(pipeline) == list(range(1, ROWS + 501))


def test_a_killed_executor(database: Database, pipeline: Path) -> None:
    with running(pipeline) as process:
        first_batch(process)
        for executor in executors():
            with suppress(psutil.NoSuchProcess):
                executor.kill()
        database.execute(f"INSERT INTO orders SELECT n, 'late' FROM generate_series({ROWS + 1}, {ROWS + 500}) n")
        deadline = time.monotonic() + 180
        while len(keys(pipeline)) < ROWS + 500:
            assert process.poll() is None, stderr_of(pipeline)
            assert time.monotonic() < deadline, stderr_of(pipeline)
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=90) == 0, stderr_of(pipeline)
    assert keys(pipeline) == list(range(1, ROWS + 501))


def test_a_killed_run(database: Database, pipeline: Path) -> None:
    with running(pipeline) as process:
        first_batch(process)
        database.execute(f"INSERT INTO orders SELECT n, 'late' FROM generate_series({ROWS + 1}, {ROWS + 500}) n")
        to_all(process, signal.SIGKILL)
        process.wait(timeout=30)
    tailrace("run", pipeline, "--once")
    assert keys(pipeline) == list(range(1, ROWS + 501))


def test_the_script_for_spark_submit(database: Database, standalone: str, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text)",
        "INSERT INTO orders VALUES (1, 'tea'), (2, 'salt')",
    )
    properties = database.properties
    environment = {
        **os.environ,
        **{f"DATABASE_{name.upper()}": properties[f"database.{name}"] for name in ("port", "user", "password")},
        "DATABASE_HOST": properties["database.hostname"],
        "DATABASE_NAME": properties["database.dbname"],
        "PATH": f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "MASTER": standalone,
        "TARGET": str(tmp_path / "events"),
        "CHECKPOINT": str(tmp_path / "checkpoint"),
    }
    for _ in range(2):
        script = [str(SUBMIT), "--once"]
        done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        database.execute("DELETE FROM orders WHERE id = 1")
    operations = sorted(row["op"] for row in pq.read_table(tmp_path / "events").to_pylist())
    assert operations == ["d", "r", "r"]
