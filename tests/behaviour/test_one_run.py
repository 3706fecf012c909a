"""One run a checkpoint: the second is refused, a run that was killed is taken over, on every kind of file system."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.errors import ConfigError, TailraceError
from tailrace.pipeline import lease
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.files import HadoopFile, LocalFile, checkpoint_file
from tailrace.pipeline.lease import Lease, Owner
from tailrace.pipeline.runner import Pipeline
from tests.behaviour.streams import eventually, properties
from tests.behaviour.test_cli import records, tailrace, written
from tests.behaviour.test_stopping import first_batch, running
from tests.conftest import Database


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_second_command_is_refused_and_a_killed_one_is_replaced_at_once(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    pipeline = written(tmp_path, database, {"json": {"path": "out"}})
    held = tmp_path / "state" / "lease.json"
    with running(pipeline) as first:
        first_batch(first)
        said = tailrace("run", pipeline, "--once", code=1).stderr
        assert f"the checkpoint is in use by another run: process {first.pid} on" in said
        assert "Remedy stop that run" in " ".join(said.split())
        for force in ([], ["--force"]):
            said = tailrace("drop", pipeline, "--yes", *force, code=1).stderr
            assert "a pipeline uses it: server process" in said
        database.execute("INSERT INTO orders VALUES (2)")
        first_batch(first)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert json.loads(held.read_text())["pid"] == first.pid
    database.execute("INSERT INTO orders VALUES (3)")
    began = time.monotonic()
    assert "waiting" not in tailrace("run", pipeline, "--once").stderr
    assert time.monotonic() - began < 300
    assert not held.exists()
    keys = sorted(record["key"]["payload"]["id"] for record in records(tmp_path / "out"))
    assert keys == [1, 2, 3]


def definition(database: Database, folder: Path, **more: Any) -> Definition:
    content = {"source": {"config": properties(database)}, "sink": {"null": {}}, "checkpoint": "state", **more}
    return from_content(content, base=folder, where="test")


def test_in_a_session_of_the_user(
    database: Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.2)
    wanted, file = definition(database, tmp_path, trigger="100ms"), tmp_path / "state" / "lease.json"
    first = Pipeline(wanted, spark).start()
    with pytest.raises(ConfigError, match="the checkpoint is in use by another run: process"):
        Pipeline(wanted, spark).start()
    eventually(lambda: first.await_(0.1) or first.progress().events == 1)
    first.stop()
    assert not file.exists()
    second = Pipeline(wanted, spark).start()
    eventually(lambda: second.await_(0.1) or second.progress().batch is not None)
    database.execute("DROP PUBLICATION pub", "INSERT INTO t VALUES (2)")
    with pytest.raises(TailraceError, match="publication"):
        second.await_(200)
    assert not file.exists(), "nor does a run that failed leave it"
    second.stop()


def test_a_run_whose_lease_another_one_has_taken_ends(
    database: Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a machine was suspended."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.2)
    run = Pipeline(definition(database, tmp_path, trigger="100ms"), spark).start()
    eventually(lambda: run.await_(0.1) or run.progress().batch is not None)
    LocalFile(tmp_path / "state" / "lease.json").write(Owner.me().content)
    with pytest.raises(ConfigError, match="in use by another run"):
        run.await_(200)
    run.stop()


@pytest.fixture(params=["local", "another file system"])
def folder(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> str:
    """A checkpoint; the other one is reached by Java's classes alone."""
    if request.param == "local":
        return str(tmp_path / "state")
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{tmp_path.name.replace('_', '')}.link./state", tmp_path.as_uri())
    return f"viewfs://{tmp_path.name.replace('_', '')}/state/below"


def test_a_file_of_a_checkpoint(spark: SparkSession, folder: str) -> None:
    file = checkpoint_file(spark, folder, "lease.json")
    assert isinstance(file, HadoopFile if "://" in folder else LocalFile)
    assert file.where == f"{folder}/lease.json"
    assert file.read() is None
    assert file.create("one")
    assert not file.create("two")
    assert file.read() == "one"
    file.write("three: é")
    assert file.read() == "three: é"
    file.delete()
    assert file.read() is None
    file.delete()
    file.write("four")
    assert file.read() == "four"


def test_a_lease_on_every_file_system(spark: SparkSession, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HadoopFile, "settle_seconds", 0.1)

    def another() -> Lease:
        return Lease(checkpoint_file(spark, folder, "lease.json"))

    first = another()
    first.acquire()
    with pytest.raises(ConfigError, match="in use by another run"):
        another().acquire()
    first.release()
    second = another()
    second.acquire()
    second.release()


@pytest.mark.parametrize(
    "place", [lambda folder: "nosuch://bucket/state", lambda folder: str(folder / "file" / "state")]
)
def test_a_place_that_cannot_be_used(spark: SparkSession, tmp_path: Path, place: Callable[[Path], str]) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConfigError) as caught:
        Lease(checkpoint_file(spark, place(tmp_path), "lease.json")).acquire()
    assert "checkpoint" in str(caught.value.remedy)
    assert "Traceback" not in caught.value.what
