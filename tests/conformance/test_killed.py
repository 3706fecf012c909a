"""kill -9 of a pipeline under load, in its snapshot and in the log: its replica ends equal to its source."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.pipeline.complete import stored
from tests.conformance.lakes import LAKES, TestedLake
from tests.conformance.pipelines import Line
from tests.conformance.subject import KEY, NOTE, VALUE, Delete, Insert, Subject, Update
from tests.conformance.traffic import inserting, traffic

# Up to a dozen starts of Spark, on a machine that may be busy.
pytestmark = pytest.mark.timeout(1800)

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run"]
SPARK = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": 2,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
TABLES = ("items", "bag")
ROWS, START_S = 500, 240
# Where the driver dies, at which passage of a run: first in the snapshot, then in the stream.
PLACES = [
    ("after-plan", 1),
    ("after-read", 1),
    ("after-write", 1),
    ("after-plan", 3),
    ("after-commit", 3),
    ("after-write", 4),
]
IN_A_BATCH = ("after-plan", "after-read", "after-table", "after-write")
# For how long a run that has planned a batch goes on; each format of replicas has a part of them.
MOMENTS_S = [number / 5 for number in range(15)]


@pytest.fixture
def line(subject: Subject, lake: TestedLake, folder: Path, request: pytest.FixtureRequest) -> Iterator[Line]:
    """A pipeline into a replica over tables that have rows."""
    with subject.source() as source:
        source.create("items")
        source.create("bag", has_key=False)
        for table in TABLES:
            source.commit(*(Insert(table, {KEY: key, VALUE: 0, NOTE: None}) for key in range(ROWS)))
        name = "".join(character for character in request.node.name if character.isalnum())[-44:]
        sink = {"replica": lake.settings(folder / name)}
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


def read_rest(line: Line, code: int = 0) -> None:
    """Read what is there now; `code` is the exit code of the run."""
    with run(line, "--once") as process:
        assert wait(process, line) == code, (line.folder / "run.log").read_text(encoding="utf-8")[-3000:]


def finish(line: Line) -> None:
    """Read the rest and compare."""
    read_rest(line)
    for table in TABLES:
        assert line.equals(table), table


def killed(line: Line, process: subprocess.Popen[bytes], place: str, nth: int) -> None:
    """Have the driver die at a passage, and wait for that."""
    failpoint = line.folder / "failpoint"
    draft = failpoint.with_suffix(".draft")
    draft.write_text(f"{place} {nth} {process.pid}", encoding="utf-8")
    draft.rename(failpoint)
    assert wait(process, line) == -signal.SIGKILL
    assert not failpoint.exists()


def test_a_pipeline_killed_under_load_resumes(line: Line) -> None:
    with traffic(line.source, *TABLES), run(line) as process:
        killed(line, process, "after-commit", 3)
    finish(line)


@pytest.mark.crash
def test_a_pipeline_killed_at_each_place_resumes(line: Line) -> None:
    with traffic(line.source, *TABLES):
        for place, nth in PLACES:
            with run(line) as process:
                killed(line, process, place, nth)
    finish(line)


@pytest.mark.crash
def test_what_is_complete_when_a_pipeline_is_killed_is_in_its_replica(line: Line) -> None:
    for place in ("after-write", "after-plan", "after-commit"):
        killed_when_complete(line, place, 3)
    until = complete_until(line)
    finish(line)
    assert complete_until(line) >= until


def complete_until(line: Line) -> int:
    """Until when the replica is said to be complete, in microseconds since 1970; 0 if nothing is said."""
    return stored(str(line.folder / "state")).until_us or 0


def killed_when_complete(line: Line, place: str, nth: int) -> None:
    """Have the driver die once some rows of this run are said to be in the replica, and see that they are."""
    earlier = complete_until(line)
    last = max(row[KEY] for row in line.source.rows("items"))
    with inserting(line.source, "items", after=last) as returned, run(line) as process:
        deadline = time.monotonic() + START_S
        while not returned or complete_until(line) < min(returned.values()) * 1e6:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        killed(line, process, place, nth)
    until = complete_until(line)
    assert until >= earlier
    rows = {key for key, at in returned.items() if at * 1e6 < until}
    assert rows
    assert rows <= {row[KEY] for row in line.replica("items")}


def letters(line: Line, table: str) -> list[tuple[str, int]]:
    """Operation and key of each change that is stored of a table that is set aside."""
    stored = line.stored(table, "/_aside").to_pylist()
    images = [(row["op"], line.source.image(json.loads(row["after"] or row["before"]))) for row in stored]
    return sorted((op, (image or {})[KEY]) for op, image in images)


def distort(line: Line, lake: TestedLake, table: str) -> None:
    """Give a column of a replica a type that no source's value has a place in."""
    names = line.stored(table).column_names
    lake.retype(line.folder, line.source.id(table).unique, next(name for name in (NOTE, "document") if name in names))


@pytest.mark.crash
def test_a_pipeline_killed_while_a_table_is_set_aside_resumes(line: Line, lake: TestedLake) -> None:
    aside, other = TABLES
    # Otherwise it is read again by itself, and nothing is left for `retry`.
    line.content["sink"]["replica"]["on_incomplete"] = "tell"
    line.write()
    finish(line)
    before = line.source.rows(aside)
    distort(line, lake, aside)
    line.source.commit(
        *(Insert(table, {KEY: ROWS, VALUE: 1, NOTE: "new"}) for table in TABLES),
        *(Update(table, 1, {VALUE: 2}) for table in TABLES),
    )
    for place in IN_A_BATCH:
        with run(line) as process:
            killed(line, process, place, 1)
    line.source.commit(*(Delete(table, 2) for table in TABLES))
    read_rest(line, code=1)
    assert line.equals(other)
    assert [each["table"] for each in line.json("status", code=1)["set_aside"]] == [str(line.source.id(aside))]
    assert letters(line, aside) == [("c", ROWS), ("d", 2), ("u", 1)]
    assert len(line.replica(aside)) == len(before), "it stays as it was"

    lake.drop(line.folder, line.source.id(aside).unique)
    line.command("retry")
    for place in IN_A_BATCH:
        with run(line) as process:
            killed(line, process, place, 1)
    line.source.commit(*(Update(table, 3, {VALUE: 4}) for table in TABLES))
    with run(line) as process:  # a run of what is there now leaves a snapshot that was asked for to the next one
        until_equal(line, process)
    finish(line)
    assert line.json("status")["set_aside"] == []
    stored = letters(line, aside)
    assert len(set(stored)) == len(stored), "a change is stored once"
    assert set(stored) >= {("c", ROWS), ("d", 2), ("u", 1)}, "and stays"


@pytest.mark.crash
def test_a_pipeline_killed_at_any_moment_resumes(line: Line, lake: TestedLake) -> None:
    with traffic(line.source, *TABLES):
        for number, moment_s in enumerate(MOMENTS_S[LAKES.index(lake) :: len(LAKES)]):
            with run(line) as process:
                _until_begun(line, process, number)
                if number == 2 and line.subject.is_altered_under_load:
                    line.source.add_column(TABLES[0], "more")
                time.sleep(moment_s)
    finish(line)


def until_equal(line: Line, process: subprocess.Popen[bytes]) -> None:
    """Wait until the replicas have the rows of their sources."""
    deadline = time.monotonic() + START_S
    while not line.equals(*TABLES):
        assert process.poll() is None, "the run has ended"
        assert time.monotonic() < deadline, (line.folder / "run.log").read_text(encoding="utf-8")[-3000:]
        time.sleep(0.5)


def _until_begun(line: Line, process: subprocess.Popen[bytes], number: int) -> None:
    """Wait until a run has planned a batch."""
    offsets = line.folder / "state" / "offsets"
    before = len(list(offsets.glob("*"))) if offsets.exists() else 0
    deadline = time.monotonic() + START_S
    while (len(list(offsets.glob("*"))) if offsets.exists() else 0) <= before:
        assert process.poll() is None, f"run {number} has ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
