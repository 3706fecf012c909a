"""The archive of Spark's classes: its place, and when Java uses it."""

from __future__ import annotations

import atexit
import errno
import os
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.pipeline.spark_start import class_archive, class_archive_writer


@pytest.fixture
def at_exit(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What is to be done when the process ends."""
    found: list[tuple[object, ...]] = []
    monkeypatch.setattr(atexit, "register", lambda *call: found.append(call))
    return found


def test_each_java_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    places = [class_archive.place(*java) for java in (("java", "17"), ("java", "21"), ("other/java", "17"))]
    assert len(set(places)) == 3
    assert {place.parent for place in places} == {tmp_path / "tailrace"}
    assert class_archive.place("java", "17") == places[0]


def test_an_existing_archive_is_used(tmp_path: Path, at_exit: list[tuple[object, ...]]) -> None:
    archive = tmp_path / "spark.jsa"
    archive.write_bytes(b"classes")
    assert class_archive.java_options(archive).startswith(f" -XX:SharedArchiveFile={archive} ")
    assert at_exit == []


def test_an_archive_in_an_image_that_is_read_only_is_used(
    tmp_path: Path, at_exit: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    archive = tmp_path / "spark.jsa"
    archive.write_bytes(b"classes")
    monkeypatch.setattr(os, "utime", refuse)
    assert class_archive.java_options(archive).startswith(f" -XX:SharedArchiveFile={archive} ")
    assert at_exit == []


def test_the_archive_is_written_after_a_run_without_one(tmp_path: Path, at_exit: list[tuple[object, ...]]) -> None:
    archive = tmp_path / "spark.jsa"
    assert class_archive.java_options(archive) == ""
    assert [call[1:] for call in at_exit] == [(archive,)]


def test_a_java_that_cannot_write_an_archive_is_tried_once(tmp_path: Path, at_exit: list[tuple[object, ...]]) -> None:
    archive = tmp_path / "spark.jsa"
    archive.touch()
    assert class_archive.java_options(archive) == ""
    assert at_exit == []


@pytest.mark.parametrize("what", ["file", "folder"])
def test_an_archive_that_others_may_write_is_not_used(
    tmp_path: Path, at_exit: list[tuple[object, ...]], caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """It is code, which Java would run."""
    archive = tmp_path / "cache" / "spark.jsa"
    archive.parent.mkdir()
    archive.write_bytes(b"classes")
    (archive if what == "file" else archive.parent).chmod(0o777)
    assert class_archive.java_options(archive) == ""
    assert at_exit == []
    assert "XDG_CACHE_HOME" in caplog.text


def test_no_archive_is_written_where_others_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive_writer, "_start_spark", lambda *_: pytest.fail("nothing is started"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    class_archive_writer.create(tmp_path / "cache" / "spark.jsa")


def test_java_reads_the_archive(spark: SparkSession) -> None:
    options = spark.sparkContext.getConf().get("spark.driver.extraJavaOptions") or ""
    named = re.search(r"-XX:SharedArchiveFile=(\S+)", options)
    maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps")  # type: ignore[union-attr]
    if named is None or not maps.exists():
        pytest.skip("needs the archive, which `make test` makes, and a /proc that shows what a process has mapped")
    assert named[1] in maps.read_text()
