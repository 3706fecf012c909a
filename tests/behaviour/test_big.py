"""Big inputs in bounded memory: one value of 200 MB, one transaction of very many rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.behaviour.streams import Stream, properties, started
from tests.conftest import Database

VALUE_BYTES = 200_000_000

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures memory as Linux tells it")


def descendants(root: int) -> dict[int, str]:
    """The processes below one, with their command lines."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (stat := read(folder / "stat")):
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    found, ahead = {}, [root]
    while ahead:
        below = children.get(ahead.pop(), [])
        found.update({pid: read(Path(f"/proc/{pid}/cmdline")).replace("\0", " ") for pid in below})
        ahead += below
    return found


def read(file: Path) -> str:
    """A file of /proc, empty once its process is gone."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class Peaks:
    """The most memory (MB, resident) that any one process of a kind took: `jvm`, `worker` (Spark's Python)."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.most: dict[str, int] = {}
        for pid in descendants(root):
            clear(pid)

    def look(self) -> None:
        """Note what the processes that are there have taken so far."""
        for pid, command in descendants(self.root).items():
            kind = "worker" if "-m pyspark." in command else "jvm" if "org.apache.spark" in command else None
            _, mark, rest = read(Path(f"/proc/{pid}/status")).partition("VmHWM:")
            if kind and mark:
                self.most[kind] = max(self.most.get(kind, 0), int(rest.split()[0]) // 1024)


def clear(pid: int) -> None:
    """Forget a process's peak."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        assert not Path(f"/proc/{pid}").exists(), pid


@contextmanager
def measured(root: int) -> Iterator[Peaks]:
    """The peaks of the processes below one, while they run; some end before the block does."""
    peaks, over = Peaks(root), threading.Event()

    def watch() -> None:
        while not over.wait(0.25):
            peaks.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()
        peaks.look()


# What `tailrace run --once` does, in one JVM for all sinks; the session is the one a pipeline gets by default.
RUN = """
import json, sys
from pathlib import Path
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.errors import TailraceError
from tailrace.pipeline.session import local_session

def events(definition):
    try:
        run = Pipeline(definition, session).start()
        run.await_()
        return run.progress().events
    except TailraceError as error:
        if "too busy" not in str(error):
            raise
        return events(definition)

session = local_session("big", Path("spark.log"), {"spark.master": "local[2]"})
for line in sys.stdin:
    definition = from_content(json.loads(line), base=Path(), where="test")
    print(events(definition), flush=True)
session.stop()
"""


@pytest.mark.big
@pytest.mark.timeout(900)
def test_a_value_of_200_mb_passes_in_the_default_memory(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE docs (id int PRIMARY KEY, doc text)")
    insert = f"INSERT INTO docs VALUES (%d, repeat('0123456789', {VALUE_BYTES // 10}))"
    sinks = {"null": {}, "json": {"path": "lines"}, "replica": {"path": "tables"}}
    with (
        subprocess.Popen(
            [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
        ) as process,
        measured(process.pid) as peaks,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        for sink, target in sinks.items():
            config = properties(database, slot__name=f"{sink}_{database.name}")
            content = {
                "source": {"config": config},
                "sink": {sink: target},
                "checkpoint": sink,
                "trigger": "availableNow",
            }
            database.execute("TRUNCATE docs", insert % 1)
            for number in (1, 2):  # by the snapshot, and by the log
                process.stdin.write(json.dumps(content) + "\n")
                process.stdin.flush()
                assert process.stdout.readline() == "1\n", f"{sink}, {'snapshot' if number == 1 else 'log'}"
                if number == 1:
                    database.execute(insert % 2)
        process.stdin.close()
        assert process.wait(60) == 0
    print(f"peaks with values of {VALUE_BYTES:,} bytes (MB): {peaks.most}")
    lines = [file for file in (tmp_path / "lines").glob("*.txt") if file.stat().st_size]
    assert len(lines) == 2
    for file in lines:
        assert file.stat().st_size > VALUE_BYTES
    docs = DeltaTable(tmp_path / "tables" / "public.docs").to_pyarrow_table(columns=["id", "doc"])
    assert sorted(docs.column("id").to_pylist()) == [1, 2]
    assert pc.binary_length(docs.column("doc")).to_pylist() == [VALUE_BYTES, VALUE_BYTES]


def transaction(spark: SparkSession, database: Database, folder: Path, rows: int) -> dict[str, int]:
    """Read one transaction of so many rows of some 120 bytes; the peaks while it was read."""
    database.execute("CREATE TABLE rows (id int PRIMARY KEY, a text, b bigint, c timestamp)")
    stream = Stream(spark, properties(database), folder)
    stream.run()
    database.execute(f"INSERT INTO rows SELECT n, repeat('x', 80), n, '2024-02-29' FROM generate_series(1, {rows}) n")
    with measured(os.getpid()) as peaks:
        query = stream.frame().writeStream.format("noop").option("checkpointLocation", str(folder))
        running = started(query.trigger(availableNow=True))
        assert running.awaitTermination(3600)
    assert sum(progress.numInputRows for progress in running.recentProgress) == rows
    return peaks.most


@pytest.mark.long
def test_a_transaction_of_200_000_rows_is_read_in_bounded_memory(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    peaks = transaction(spark, database, tmp_path, 200_000)
    # As Debezium's records with their schemas these are 600 MB; a reader that held them all would hold that much.
    assert peaks["worker"] < 450, peaks


@pytest.mark.big
@pytest.mark.timeout(3600)
def test_a_transaction_of_5_million_rows_is_read_in_bounded_memory(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    peaks = transaction(spark, database, tmp_path, 5_000_000)
    print(f"peaks of a transaction of 5,000,000 rows (MB): {peaks}")
    assert peaks["worker"] < 500, peaks
    assert peaks["jvm"] < 2500, peaks
