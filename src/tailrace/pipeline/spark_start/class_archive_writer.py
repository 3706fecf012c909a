"""Writes the archive of Spark's classes: `python -m tailrace.pipeline.spark_start.class_archive_writer [FILE]`.

With a file it works at the lowest priority: a run that has ended wants it written.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from tailrace.connectors.private_files import is_own_folder
from tailrace.override import override
from tailrace.pipeline.session import SETTINGS, check_java, local_session
from tailrace.pipeline.spark_start.class_archive import QUIET, place
from tailrace.spark.versions import DataSource, DataSourceStreamReader, InputPartition, ReadLimit

_UNUSED_SECONDS = 30 * 24 * 3600  # guessed
_MOST_SECONDS = 300  # guessed


def create(archive: Path) -> None:
    """Start a Spark that writes the archive, and remove archives that no start has used for a month. Raises OSError.

    Nothing is written into a folder that others may write: an archive in it would not be used.
    """
    archive.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not is_own_folder(archive.parent):
        return
    with tempfile.TemporaryDirectory(prefix="new-", dir=archive.parent) as folder:
        written = Path(folder) / "archive"
        _start_spark(Path(folder), f"-XX:ArchiveClassesAtExit={written} {QUIET}")
        if not written.exists():
            written.touch()
        written.replace(archive)
    for other in archive.parent.glob("spark-*.jsa"):
        if time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
            other.unlink(missing_ok=True)


def _start_spark(folder: Path, options: str) -> None:
    """Run a small pipeline, which loads the classes of streams, Python workers and files, and wait until Java ends."""
    settings = {"spark.driver.extraJavaOptions": f"{SETTINGS['spark.driver.extraJavaOptions']} {options}"}
    session = local_session("classes", folder / "spark.log", {**settings, "spark.master": "local[2]"})
    session.dataSource.register(_Source)
    frame = session.readStream.format(_Source.name()).load().mapInArrow(_same, _Source.columns)
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(lambda rows, _: rows.write.parquet(str(folder / "out"))).start().awaitTermination()
    gateway: Any = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_MOST_SECONDS)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


class _Reader(DataSourceStreamReader):
    """A stream of one row."""

    @override
    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    @override
    def latestOffset(self, start: dict[str, int] | None = None, limit: ReadLimit | None = None) -> dict[str, int]:
        return {"rows": 1}

    @override
    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(start["rows"])]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"number": [partition.value], "content": ["text"]})


class _Source(DataSource):
    columns = "number bigint, content string"

    @classmethod
    @override
    def name(cls) -> str:
        return "classes"

    @override
    def schema(self) -> str:
        return self.columns

    @override
    def streamReader(self, schema: StructType) -> _Reader:
        return _Reader()


if __name__ == "__main__":
    if sys.argv[1:]:
        os.nice(19)
    create(Path(sys.argv[1]) if sys.argv[1:] else place(*check_java()))
