"""Files that Spark's JVM writes on a local disk: their permissions, and errors."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tailrace.pipeline.spark_start import local_files


def java(spark: SparkSession) -> Any:
    """The packages of Spark's JVM."""
    return spark._jvm


@pytest.fixture
def local(spark: SparkSession) -> Any:
    """The file system that all of the JVM shares."""
    return java(spark).org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())


def path(spark: SparkSession, place: Path) -> Any:
    return java(spark).org.apache.hadoop.fs.Path(str(place))


def test_files_have_the_permissions_that_hadoop_gives_them(spark: SparkSession, local: Any, tmp_path: Path) -> None:
    assert local.getRaw().getClass().getSimpleName() == "LocalFiles"
    for name in ("plain", "ä b"):
        local.create(path(spark, tmp_path / name), True).close()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o644
        assert not (tmp_path / f".{name}.crc").exists()
    permission = java(spark).org.apache.hadoop.fs.permission.FsPermission("1750")
    local.mkdirs(path(spark, tmp_path / "folder"))
    local.setPermission(path(spark, tmp_path / "folder"), permission)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o1750


def test_a_file_that_is_not_there_is_an_error(spark: SparkSession, local: Any, tmp_path: Path) -> None:
    permission = java(spark).org.apache.hadoop.fs.permission.FsPermission("644")
    with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
        local.setPermission(path(spark, tmp_path / "none"), permission)


def test_what_spark_cannot_compile_leaves_files_as_they_were(
    spark: SparkSession, local: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = local.getRaw().hashCode()
    monkeypatch.setattr(local_files, "_SOURCE", "no Java")
    with caplog.at_level(logging.INFO):
        local_files.write_plainly(spark.sparkContext)
    assert "get their permissions by a program" in caplog.text
    assert local.getRaw().hashCode() == before
