"""A checkpoint that is older than its sink: copied back, or without its newest files. No change is lost or doubled.

The replica continues; the file sinks, whose batches Spark tells apart by number alone, refuse to start.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.errors import TailraceError
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.sinks.replica.target import read_table
from tests.behaviour.engines import ENGINE, place, sink
from tests.behaviour.streams import properties
from tests.conftest import Database

TABLES = ("keyed", "bag", "large")
FIRST = (
    "CREATE TABLE keyed (id int PRIMARY KEY, v text)",
    "CREATE TABLE bag (kind int, v text)",
    "ALTER TABLE bag REPLICA IDENTITY FULL",
    "CREATE TABLE large (id int PRIMARY KEY, small int, big text)",
    "ALTER TABLE large ALTER COLUMN big SET STORAGE EXTERNAL",
    "INSERT INTO keyed SELECT n, 'first' FROM generate_series(1, 20) n",
    "INSERT INTO bag SELECT n % 3, 'first' FROM generate_series(1, 20) n",
    "INSERT INTO large SELECT n, 0, repeat(md5(n::text), 200) FROM generate_series(1, 5) n",
)
# What the replica holds when the checkpoint does not: keys that move, with values that the log does not repeat.
WRITTEN = (
    "INSERT INTO keyed SELECT n, 'written' FROM generate_series(21, 25) n",
    "UPDATE keyed SET id = 100 + id WHERE id < 4",
    "INSERT INTO keyed VALUES (1, 'another')",
    "DELETE FROM keyed WHERE id = 5",
    "INSERT INTO bag SELECT 7, 'written' FROM generate_series(1, 3)",
    "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE kind = 1 LIMIT 2)",
    "UPDATE large SET id = 50 + id WHERE id = 1",
    "INSERT INTO large VALUES (1, 1, 'small')",
)
LATER = (
    "INSERT INTO keyed VALUES (200, 'later')",
    "DELETE FROM keyed WHERE id = 1",
    "UPDATE keyed SET id = 1 WHERE id = 101",
    "INSERT INTO bag VALUES (7, 'written')",
    "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE kind = 2 LIMIT 1)",
    "UPDATE large SET small = 9 WHERE id = 51",
    "DELETE FROM large WHERE id = 2",
)


class Case:
    """A pipeline that runs to the end of the log whenever it is asked to."""

    def __init__(self, database: Database, spark: SparkSession, folder: Path, sink: dict[str, Any]) -> None:
        self.database, self.spark, self.folder = database, spark, folder
        self.sink, self.properties = sink, properties(database)

    def definition(self) -> Definition:
        content = {
            "source": {"config": self.properties},
            "sink": self.sink,
            "checkpoint": "state",
            "trigger": "availableNow",
        }
        return from_content(content, base=self.folder, where="test")

    def run(self) -> None:
        assert Pipeline(self.definition(), self.spark).start().await_(200)

    def copy(self) -> None:
        """Keep the checkpoint as it is."""
        shutil.copytree(self.folder / "state", self.folder / "copy")

    def restore(self) -> None:
        """Put back the checkpoint that was kept."""
        shutil.rmtree(self.folder / "state")
        shutil.copytree(self.folder / "copy", self.folder / "state")

    def newest(self) -> int:
        committed = position(str(self.folder / "state")).committed
        assert committed is not None
        return committed.number

    def delete(self, *names: str) -> None:
        """Delete the newest file of some folders of the checkpoint."""
        number = self.newest()
        for name in names:
            for file in (self.folder / "state" / name).glob(f"*{number}*"):
                file.unlink()

    def source(self, table: str) -> Counter[tuple[Any, ...]]:
        with self.database.connect() as connection:
            return Counter(connection.execute(f"SELECT * FROM {table}".encode()).fetchall())

    def replica(self, table: str) -> Counter[tuple[Any, ...]]:
        rows = read_table(place(self.folder)[0], f"public.{table}", place(self.folder)[1]).to_pylist()
        return Counter(tuple(row.values()) for row in rows)

    def check(self) -> None:
        for table in TABLES:
            source, replica = self.source(table), self.replica(table)
            assert (source - replica, replica - source) == (Counter(), Counter()), table


@pytest.fixture
def replica(database: Database, session: SparkSession, tmp_path: Path) -> Case:
    case = Case(database, session, tmp_path, {"replica": sink(tmp_path)})
    database.execute(*FIRST)
    case.run()
    database.execute("INSERT INTO keyed VALUES (99, 'streamed')")
    case.run()
    return case


def test_a_checkpoint_copied_back_loses_nothing(replica: Case) -> None:
    replica.copy()
    replica.database.execute(*WRITTEN)
    replica.run()
    replica.check()
    replica.restore()
    replica.database.execute(*LATER)
    replica.run()
    replica.check()


@pytest.mark.long
def test_a_truncate_in_what_is_read_twice(replica: Case) -> None:
    replica.copy()
    replica.database.execute(*WRITTEN, "TRUNCATE keyed", "TRUNCATE bag", "INSERT INTO bag VALUES (0, 'after')")
    replica.run()
    replica.restore()
    replica.database.execute("INSERT INTO keyed VALUES (300, 'later')", "INSERT INTO bag VALUES (0, 'after')")
    replica.run()
    replica.check()


@pytest.mark.long
@pytest.mark.long
def test_smaller_batches_than_before(replica: Case) -> None:
    replica.copy()
    replica.database.execute(*WRITTEN)
    replica.run()
    replica.restore()
    replica.database.execute(*LATER)
    replica.properties["maxBytesPerTrigger"] = "300"
    replica.run()
    replica.check()


@pytest.mark.parametrize(
    "folders",
    [
        pytest.param(("offsets", "commits"), id="offsets-commits"),
        pytest.param(("commits",), id="commits", marks=pytest.mark.long),
    ],
)
def test_the_newest_files_of_a_checkpoint_are_missing(replica: Case, folders: tuple[str, ...]) -> None:
    replica.database.execute(*WRITTEN)
    replica.run()
    replica.delete(*folders)
    replica.database.execute(*LATER)
    replica.run()
    replica.check()


def refused(case: Case) -> TailraceError:
    with pytest.raises(TailraceError) as caught:
        case.run()
    return caught.value


def lines(case: Case) -> int:
    return case.spark.read.text(str(case.folder / "lake")).count()


def rows(case: Case) -> int:
    return case.spark.read.parquet(str(case.folder / "lake")).count()


@pytest.mark.skipif(ENGINE != "deltalake", reason="the engine has no part in it")
@pytest.mark.parametrize(("sink", "count"), [("json", lines), pytest.param("parquet", rows, marks=pytest.mark.long)])
def test_a_file_sink_ahead_of_its_checkpoint(
    database: Database, spark: SparkSession, tmp_path: Path, sink: str, count: Callable[[Case], int]
) -> None:
    case = Case(database, spark, tmp_path, {sink: {"path": "lake"}})
    database.execute("CREATE TABLE keyed (id int PRIMARY KEY, v text)")
    case.run()
    database.execute("INSERT INTO keyed VALUES (1, 'streamed')")
    case.run()
    case.copy()
    database.execute("INSERT INTO keyed VALUES (2, 'written')")
    case.run()
    written = case.newest()
    database.execute("INSERT INTO keyed VALUES (3, 'later')")
    case.restore()
    error = refused(case)
    assert f"micro-batch {written}" in str(error)
    assert error.remedy is not None
    # What the remedy says: without the file sink's record of the batch its rows are written again.
    (tmp_path / "lake" / "_spark_metadata" / str(written)).unlink()
    case.run()
    assert count(case) == 3


@pytest.mark.long
def test_commits_without_offsets_are_named(replica: Case) -> None:
    number = replica.newest()
    replica.delete("offsets")
    replica.database.execute(*WRITTEN)
    error = refused(replica)
    assert f"offsets/{number} is not" in str(error)
    assert f"above {number - 1}" in str(error.remedy)
    for file in (replica.folder / "state" / "commits").glob(f"*{number}*"):
        file.unlink()
    replica.run()
    replica.check()


@pytest.mark.skipif(ENGINE != "deltalake", reason="the engine has no part in it")
def test_a_new_checkpoint_over_files_of_another(database: Database, spark: SparkSession, tmp_path: Path) -> None:
    case = Case(database, spark, tmp_path, {"json": {"path": "lake"}})
    database.execute("CREATE TABLE keyed (id int PRIMARY KEY, v text)", "INSERT INTO keyed VALUES (1, 'first')")
    case.run()
    shutil.rmtree(tmp_path / "state")
    assert "the checkpoint is new" in str(refused(case))
