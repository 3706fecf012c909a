"""Detects at the start that the checkpoint is behind its sink, or lacks files.

That happens when a checkpoint is copied back, or when a power failure or an operator takes its newest files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailrace.errors import SinkError
from tailrace.pipeline.checkpoint import no_id, refuse_behind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where Spark's file sink keeps a record of each micro-batch; every few of them are put together in one file.
_SINK_LOG, _COMPACT = "_spark_metadata", ".compact"


@dataclass(frozen=True)
class Numbers:
    """The micro-batches of a checkpoint: the last one planned and the last one committed, -1 for none."""

    planned: int
    committed: int

    @property
    def repeated(self) -> int | None:
        """The micro-batch that the next run repeats."""
        return self.planned if self.planned > self.committed else None


def numbers(session: SparkSession, checkpoint: str) -> Numbers:
    """The numbers of a checkpoint, on any file system Spark writes to. Raises OffsetError if files are missing."""
    newest = Numbers(*(max(_batches(session, f"{checkpoint}/{name}"), default=-1) for name in ("offsets", "commits")))
    refuse_behind(checkpoint, newest.planned, newest.committed)
    return newest


def refuse_without_id(session: SparkSession, checkpoint: str) -> None:
    """Raises NoIdError for a checkpoint that has begun and lacks the file without which Spark does not start."""
    files, path = _folder(session, f"{checkpoint}/metadata")
    if not files.exists(path):
        raise no_id(checkpoint, "a file of the checkpoint is missing")
    if not files.getFileStatus(path).getLen():
        raise no_id(checkpoint, "a file of the checkpoint is empty")


def remove_unfinished(session: SparkSession, checkpoint: str) -> None:
    """Removes what a run left that was killed while Spark wrote the first offset.

    Spark writes a file under a hidden name and renames it; it refuses to plan a first micro-batch beside such a file.
    """
    for folder in ("offsets", "commits"):
        files, path = _folder(session, f"{checkpoint}/{folder}")
        for name in _names(session, f"{checkpoint}/{folder}"):
            if name.startswith(".") and name.endswith(".tmp"):
                files.delete(path.suffix(f"/{name}"), False)


def refuse_ahead(session: SparkSession, path: str, planned: int) -> None:
    """Raises SinkError if Spark's file sink has written more micro-batches than the checkpoint has planned.

    It would skip the next ones, whatever they hold, as it knows them by their numbers.
    """
    written = _batches(session, f"{path}/{_SINK_LOG}")
    beyond = sorted(number for number in written if number > planned)
    if not beyond:
        return
    state = f"the checkpoint has planned no more than {planned}" if planned >= 0 else "the checkpoint is new"
    remedy = "put the newest checkpoint back; or begin again with another `path` and another `checkpoint`"
    if planned >= 0 and not any(written[number].endswith(_COMPACT) for number in beyond):
        files = ", ".join(written[number] for number in beyond)
        remedy += (
            f"; or delete the files {files} of {path}/{_SINK_LOG}: readers that honour it forget these micro-batches, "
            "and their rows are written again (other readers find them twice)"
        )
    raise SinkError(
        f"micro-batch {beyond[-1]} is written already, and {state}: it was copied back, lost its newest files, or is "
        "not the one that wrote this path. Spark's file sink would skip new rows under the known numbers",
        where=path,
        remedy=remedy,
    )


def _batches(session: SparkSession, folder: str) -> dict[int, str]:
    """The files of a folder that bear the number of a micro-batch."""
    names = {name.removesuffix(_COMPACT): name for name in _names(session, folder)}
    return {int(number): name for number, name in names.items() if number.isdigit()}


def _names(session: SparkSession, folder: str) -> list[str]:
    files, path = _folder(session, folder)
    if not files.exists(path):
        return []
    return [str(status.getPath().getName()) for status in files.listStatus(path)]


def _folder(session: SparkSession, folder: str) -> tuple[Any, Any]:
    """A folder's file system and path, Java's objects."""
    context: Any = session.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(folder)
    return path.getFileSystem(context._jsc.hadoopConfiguration()), path
