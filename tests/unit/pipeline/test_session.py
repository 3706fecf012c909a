"""Java is looked for before Spark fails of it in its own words."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from tailrace.errors import ConfigError, TailraceError
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.pipeline.session import check_java, local_session
from tailrace.pipeline.spark_start import SWITCH, worker_python


def java(home: Path, script: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("said", ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19'])
def test_a_supported_java_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    java(tmp_path, f"echo '{said}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "Spark needs a newer Java than 11"),
        ("echo 'java version \"1.8.0_292\"' >&2", "Spark needs a newer Java than 8"),
    ],
)
def test_other_javas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str) -> None:
    java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(TailraceError, match=words) as caught:
        check_java()
    assert caught.value.remedy is not None
    assert "Install Java 17 or newer" in caught.value.remedy


@pytest.mark.parametrize("script", [None, "exit 1"])
def test_a_wrong_java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None) -> None:
    if script is not None:
        java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        TailraceError, match=f"JAVA_HOME is {tmp_path}, and {tmp_path}/bin/java cannot be run"
    ) as caught:
        check_java()
    assert "set JAVA_HOME to the folder of a Java 17 or newer, or unset it" in (caught.value.remedy or "")


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TailraceError, match="Spark needs Java"):
        check_java()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, no folder")
    with pytest.raises(TailraceError, match=r"state/p\.log: the log cannot be written") as caught:
        local_session("p", tmp_path / "state" / "p.log", {})
    assert "another place" in (caught.value.remedy or "")


@pytest.mark.parametrize("checkpoint", ["afile", "afile/state"])
def test_a_checkpoint_that_cannot_be_made(tmp_path: Path, checkpoint: str) -> None:
    (tmp_path / "afile").write_text("no folder")
    config = {"topic.prefix": "t", "database.hostname": "h", "database.user": "u", "database.dbname": "d"}
    content = {"source": {"config": config}, "sink": "console", "checkpoint": checkpoint}
    pipeline = Pipeline(from_content(content, base=tmp_path, where="test"))
    with pytest.raises(ConfigError, match=rf"checkpoint: the folder .*{checkpoint} cannot be made: ") as caught:
        pipeline.start()
    assert "no file on the way" in (caught.value.remedy or "")


def test_python_of_spark_without_its_zip_files() -> None:
    entries = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10-src.zip", "/own *", "/own/lib/own.zip"]
    given = {"PYTHONPATH": ":".join(entries), "TAILRACE_PYTHON": sys.executable}
    command = [worker_python.program("local[2]"), "-c", "import sys; print(sys.path)"]
    printed = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=True).stdout
    assert ast.literal_eval(printed)[1:3] == entries[2:]
    assert "pyspark.zip" not in printed
    assert "py4j" not in printed


@pytest.mark.parametrize("is_on", [True, False])
def test_a_start_without_our_ways_leaves_spark_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    """Up to the moment at which Java is started; no file is written plainly without the switch, see local_session."""
    archive = tmp_path / "spark.jsa"
    archive.write_bytes(b"classes")
    given: list[SparkConf] = []

    def launch(conf: SparkConf, _: object) -> None:
        given.append(conf)
        raise OSError("far enough")

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    monkeypatch.setattr("tailrace.pipeline.spark_start.class_archive.place", lambda *_: archive)
    monkeypatch.setenv("PYSPARK_PYTHON", "python of PATH")
    with pytest.raises(TailraceError, match="far enough"):
        local_session("p", tmp_path / "p.log", {} if is_on else {SWITCH: False})
    options = given[0].get("spark.driver.extraJavaOptions") or ""
    assert ("SharedArchiveFile" in options) == is_on
    assert (os.environ["PYSPARK_PYTHON"] == sys.executable) != is_on


def test_the_switch_of_a_start_is_on_or_off(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'maybe' is neither true nor false"):
        local_session("p", tmp_path / "p.log", {SWITCH: "maybe"})


def test_workers_import_what_is_installed(spark: SparkSession) -> None:
    def files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"file": [sys.modules["pyspark"].__file__]})

    (row,) = spark.range(1).mapInArrow(files, "file string").collect()
    assert row["file"] == find_spec("pyspark").origin  # type: ignore[union-attr]
