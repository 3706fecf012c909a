"""`tailrace run` is stopped by signals: to its process group, to all of its processes, at several moments, twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tailrace.pipeline.checkpoint import position
from tests.behaviour.test_cli import COMMAND, records, tailrace, written
from tests.conftest import Database

pytestmark = pytest.mark.timeout(600)

ROWS = 200_000
Sent = Callable[["subprocess.Popen[str]", signal.Signals], None]


def to_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """As a terminal does, and `kill -- -PID`."""
    os.killpg(process.pid, number)


def to_all(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """As systemd does with KillMode=control-group, its default: Java and the Python workers get it as well."""
    for pid in descendants(process.pid):
        with suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(pid, number)


def descendants(root: int) -> list[int]:
    """A process and all that it started, directly or not, the oldest first."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


@contextmanager
def running(pipeline: Path) -> Iterator[subprocess.Popen[str]]:
    """`tailrace run` in a process group of its own."""
    output = pipeline.with_name("stderr.txt")
    with output.open("w") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "run", str(pipeline), "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            to_all(process, signal.SIGKILL)
        process.communicate(timeout=120)


def stderr_of(pipeline: Path) -> str:
    return pipeline.with_name("stderr.txt").read_text(encoding="utf-8")


def ends(process: subprocess.Popen[str], pipeline: Path, code: int) -> None:
    """The process ends with that code, says little, and leaves no process behind."""
    family = descendants(process.pid)
    assert process.wait(timeout=240) == code, stderr_of(pipeline)
    assert "Traceback" not in stderr_of(pipeline), stderr_of(pipeline)
    assert "Error" not in stderr_of(pipeline), stderr_of(pipeline)
    assert len(stderr_of(pipeline).splitlines()) <= 4, stderr_of(pipeline)
    deadline = time.monotonic() + 120
    while left := [pid for pid in family if Path(f"/proc/{pid}/exe").exists()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def first_batch(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert next(line for line in map(json.loads, process.stdout) if line["batch"] is not None)


@pytest.fixture
def pipeline(database: Database, tmp_path: Path) -> Path:
    """A pipeline into JSON lines."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text)", "INSERT INTO orders SELECT generate_series(1, 5), 'x'"
    )
    return written(tmp_path, database, {"json": {"path": "out"}})


def resume(database: Database, pipeline: Path) -> None:
    """The next run gives all rows, those of now included, once."""
    database.execute("INSERT INTO orders VALUES (0, 'late')")
    tailrace("run", pipeline, "--once")
    keys = sorted(record["key"]["payload"]["id"] for record in records(pipeline.parent / "out"))
    assert keys == list(range(len(keys)))


@pytest.mark.parametrize(
    "send", [pytest.param(to_group, marks=pytest.mark.crash), pytest.param(to_all, marks=pytest.mark.long)]
)
def test_idle(database: Database, pipeline: Path, send: Sent) -> None:
    with running(pipeline) as process:
        first_batch(process)
        send(process, signal.SIGTERM)
        ends(process, pipeline, 0)
    resume(database, pipeline)


@pytest.mark.crash
@pytest.mark.parametrize("send", [to_group, to_all])
def test_in_a_batch(database: Database, pipeline: Path, send: Sent) -> None:
    database.execute(f"INSERT INTO orders SELECT generate_series(6, {ROWS}), repeat('x', 200)")
    with running(pipeline) as process:
        state = str(pipeline.with_name("state"))
        while position(state).planned is None:
            assert process.poll() is None, stderr_of(pipeline)
            time.sleep(0.05)
        assert position(state).committed is None
        send(process, signal.SIGTERM)
        ends(process, pipeline, 0)
    resume(database, pipeline)


@pytest.mark.crash
@pytest.mark.parametrize("send", [to_group, to_all])
@pytest.mark.parametrize("moment", ["java", "session"])
def test_while_spark_starts(pipeline: Path, send: Sent, moment: str) -> None:
    """Java is launched, and then the session is made."""
    with running(pipeline) as process:
        log = pipeline.with_name("state") / "shop.log"
        while len(descendants(process.pid)) < 2 or (moment == "session" and not (log.exists() and log.stat().st_size)):
            assert process.poll() is None, stderr_of(pipeline)
            time.sleep(0.02)
        send(process, signal.SIGTERM)
        ends(process, pipeline, 0)
    assert not (pipeline.with_name("state") / "lease.json").exists()


@pytest.mark.crash
def test_a_second_signal_does_not_wait(pipeline: Path) -> None:
    with running(pipeline) as process:
        first_batch(process)
        to_group(process, signal.SIGTERM)
        while "Stopping" not in stderr_of(pipeline):
            time.sleep(0.01)
        began = time.monotonic()
        to_group(process, signal.SIGTERM)
        assert process.wait(timeout=30) in (0, -signal.SIGTERM)
        assert time.monotonic() - began < 10
        assert "Traceback" not in stderr_of(pipeline)


@pytest.mark.crash
@pytest.mark.parametrize("send", [to_group, to_all])
def test_ctrl_c(pipeline: Path, send: Sent) -> None:
    with running(pipeline) as process:
        first_batch(process)
        send(process, signal.SIGINT)
        ends(process, pipeline, 130)
