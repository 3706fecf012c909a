"""kill -9 of a pipeline under load, in its snapshot and in the log: its replica ends equal to its source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance.pipelines import Line
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Subject
from tests.conformance.traffic import traffic

# Each run starts Spark, on a machine that may be busy.
pytestmark = pytest.mark.timeout(600)

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run"]
SPARK = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": 2,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
TABLES = ("items", "bag")
ROWS, START_S = 500, 240
# Where the driver dies, at which passage. In the default suite one: in the stream, with the snapshot behind it.
PLACES = [
    pytest.param("after-write", 1, marks=pytest.mark.crash),
    pytest.param("after-plan", 1, marks=pytest.mark.crash),
    pytest.param("after-read", 1, marks=pytest.mark.crash),
    pytest.param("after-plan", 3, marks=pytest.mark.crash),
    ("after-commit", 3),
    pytest.param("after-write", 4, marks=pytest.mark.crash),
]


@pytest.fixture
def line(subject: Subject, folder: Path, request: pytest.FixtureRequest) -> Iterator[Line]:
    """A pipeline into a replica over tables that have rows."""
    with subject.source() as source:
        source.create("items")
        source.create("bag", has_key=False)
        for table in TABLES:
            source.commit(*(Insert(table, {KEY: key, VALUE: 0, NOTE: None}) for key in range(ROWS)))
        name = "".join(character for character in request.node.name if character.isalnum())[-30:]
        sink = {"replica": {"path": "lake"}}
        yield Line(subject, source, folder / name, sink, tables=TABLES, spark=SPARK)


@contextmanager
def run(line: Line, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The pipeline in a process group of its own, which is killed at the end."""
    environment = {**os.environ, "TAILRACE_FAILPOINT": str(line.folder / "failpoint")}
    with (line.folder / "run.log").open("ab") as log:
        process = subprocess.Popen(
            [*COMMAND, str(line.file), *arguments], stdout=log, stderr=log, start_new_session=True, env=environment
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait(process: subprocess.Popen[bytes], line: Line) -> int:
    """The exit code of a run."""
    try:
        return process.wait(START_S)
    except subprocess.TimeoutExpired:
        raise AssertionError((line.folder / "run.log").read_text(encoding="utf-8")[-3000:]) from None


def finish(line: Line) -> None:
    """Read the rest and compare."""
    with run(line, "--once") as process:
        assert wait(process, line) == 0, (line.folder / "run.log").read_text(encoding="utf-8")[-3000:]
    for table in TABLES:
        assert line.equals(table), table


@pytest.mark.parametrize(("place", "nth"), PLACES)
def test_a_pipeline_killed_under_load_resumes(line: Line, place: str, nth: int) -> None:
    failpoint = line.folder / "failpoint"
    with traffic(line.source, *TABLES), run(line) as process:
        draft = failpoint.with_suffix(".draft")
        draft.write_text(f"{place} {nth} {process.pid}", encoding="utf-8")
        draft.rename(failpoint)
        assert wait(process, line) == -signal.SIGKILL
        assert not failpoint.exists()
    finish(line)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(15))
def test_a_pipeline_killed_at_any_moment_resumes(line: Line, seed: int) -> None:
    with traffic(line.source, *TABLES):
        for number in range(3):
            with run(line) as process:
                _until_begun(line, process, number)
                if number == 1 and line.subject.is_altered_under_load:
                    line.source.add_column(TABLES[0], "more")
                time.sleep(seed / 5)
    finish(line)


def _until_begun(line: Line, process: subprocess.Popen[bytes], number: int) -> None:
    """Wait until a run has planned a batch."""
    offsets = line.folder / "state" / "offsets"
    before = len(list(offsets.glob("*"))) if offsets.exists() else 0
    deadline = time.monotonic() + START_S
    while (len(list(offsets.glob("*"))) if offsets.exists() else 0) <= before:
        assert process.poll() is None, f"run {number} has ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
