"""Makes the folder of a checkpoint, and reads its position without Spark: the offsets last planned and committed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tailrace.connectors.locations import located
from tailrace.errors import ConfigError, OffsetError


@dataclass(frozen=True)
class CheckpointBatch:
    """A micro-batch of the checkpoint: its number and the source's offset at its end."""

    number: int
    offset: dict[str, Any]


@dataclass(frozen=True)
class CheckpointState:
    """The newest batch that was planned and the newest that is committed; None where there is none."""

    planned: CheckpointBatch | None
    committed: CheckpointBatch | None

    @property
    def pipeline(self) -> str | None:
        """The name that the offsets give the pipeline, None before the first one."""
        newest = self.planned or self.committed
        return None if newest is None else newest.offset.get("pipeline")

    @property
    def offsets(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The offsets of the committed batch and of the planned one."""
        return self.committed.offset if self.committed else None, self.planned.offset if self.planned else None


def position(checkpoint: str) -> CheckpointState:
    """The position held in `checkpoint`, a path or URL. Raises OffsetError, with the remedy, if a file is damaged.

    It is a SparkAloneError where only Spark can read the checkpoint.
    """
    folder = _Folder(*file_system(checkpoint))
    # In this order: a pipeline that runs plans a batch before it commits it.
    committed, planned = folder.newest("commits"), folder.newest("offsets")
    refuse_behind(folder.root, -1 if planned is None else planned, -1 if committed is None else committed)
    if planned is None:
        return CheckpointState(None, None)
    again = None if committed == planned else f"micro-batch {planned} was not committed and is planned again"
    folder.metadata(is_committed=again is None)
    if committed is not None:
        folder.commit(committed)
    newest = folder.batch(
        planned,
        f"delete it: {again}"
        if again
        else f"put it back from a copy; or delete it and {folder.root}/commits/{planned}: micro-batch {planned} is "
        "then read again",
    )
    if planned == 0:
        return CheckpointState(newest, newest if committed == 0 else None)
    # Spark reads the one before as well, whether it needs it or not.
    remedy = "put it back from a copy, or start again with another `checkpoint`"
    if not again:
        remedy = f"copy {folder.root}/offsets/{planned} to it: micro-batch {planned} is committed"
    before = folder.batch(planned - 1, remedy)
    if committed is None:
        return CheckpointState(newest, None)
    offsets = {planned: newest, planned - 1: before}
    return CheckpointState(newest, offsets.get(committed) or folder.batch(committed, remedy))


def file_system(checkpoint: str) -> tuple[fs.FileSystem, str]:
    """The file system of a checkpoint, a path or URL, and its path there. Raises ConfigError, SparkAloneError."""
    try:
        system, path = located(checkpoint)
        if not isinstance(system, fs.LocalFileSystem):  # whose keys are tried by a question
            system.get_file_info(path)
    except (pa.ArrowException, OSError) as error:
        raise SparkAloneError(
            f"this process cannot open the file system of the checkpoint: {str(error).splitlines()[0]}",
            where=checkpoint,
            remedy="give this process the keys of the store, for S3 by AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
            "AWS_REGION and AWS_ENDPOINT_URL, or a role of the machine; keys that only `spark` has let `tailrace run` "
            "alone read it. URLs may be file, s3, s3a, gs, abfss, and hdfs with JAVA_HOME and CLASSPATH set",
        ) from error
    if isinstance(system, fs.LocalFileSystem) and (file := file_on_the_way(Path(path))) is not None:
        what = "it is a file" if file == Path(path) else f"{file} is a file"
        raise ConfigError(what, where=f"checkpoint {path}", remedy="set `checkpoint` to a folder, or to one to be made")
    return system, path


def make_folder(folder: Path) -> None:
    """Make the folder of a checkpoint, which its owner alone may read. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(
            f"the folder {folder} cannot be made: {error.strerror}",
            where="checkpoint",
            remedy="set it to a folder this user may write, on a disk with space, with no file on the way",
        ) from error


def file_on_the_way(path: Path) -> Path | None:
    """The file that is in place of a folder, or of one above it, None if there is none."""
    # Path.is_file raises an error for a folder that this user may not look into.
    return next((each for each in (path, *path.parents) if os.path.isfile(each)), None)  # noqa: PTH113


class NoIdError(OffsetError):
    """A checkpoint without the id of its query, by which sinks know what they have: see query_id.py."""


def no_id(checkpoint: str, what: str) -> NoIdError:
    """The error of a checkpoint whose file `metadata` does not have the query's id."""
    remedy = (
        "put it back from a copy; or write the same id again, which `tailrace check PIPELINE` finds in the sink: with "
        "another id a sink does not know what it has"
    )
    return NoIdError(what, where=f"{checkpoint}/metadata", remedy=remedy)


class SparkAloneError(OffsetError):
    """A checkpoint in a file system that only Spark can read, not this process by itself."""


def refuse_behind(checkpoint: str, planned: int, committed: int) -> None:
    """Raises OffsetError if a micro-batch was committed, and its offset is gone; the numbers are -1 for none."""
    if committed <= planned:
        return
    left = f"the last one left is {planned}" if planned >= 0 else "none is left"
    above = f"the files of {checkpoint}/commits above {planned}" if planned >= 0 else f"{checkpoint}/commits"
    again = "these micro-batches are then read again" if planned >= 0 else "the pipeline then starts again"
    raise OffsetError(
        f"commits/{committed} is there, offsets/{committed} is not: the newest offsets were deleted or lost, {left}",
        where=checkpoint,
        remedy=f"put the newest offsets back; or delete {above}: {again}",
    )


@dataclass(frozen=True)
class _Folder:
    """A checkpoint's folder, and what its files must hold. A file that is damaged is an OffsetError."""

    filesystem: fs.FileSystem
    root: str

    def newest(self, name: str) -> int | None:
        """The highest number among the files of a folder in it."""
        try:
            files = self.filesystem.get_file_info(fs.FileSelector(f"{self.root}/{name}", allow_not_found=True))
        except FileNotFoundError:  # it was made while it was looked for
            return None
        except PermissionError as error:
            raise self._damaged(name, "cannot be read", "run this as the user who runs the pipeline") from error
        return max((int(file.base_name) for file in files if file.base_name.isdigit()), default=None)

    def batch(self, number: int, remedy: str) -> CheckpointBatch:
        """Spark's file of a batch: a version line, a line of metadata, and a line for each source's offset."""
        name = f"offsets/{number}"
        lines = self._lines(name, 3, remedy)
        offset = _object(lines[2])
        if offset is None:
            raise self._damaged(name, "is cut short, or not of Tailrace's source", remedy)
        return CheckpointBatch(number, offset)

    def commit(self, number: int) -> None:
        """Spark's file of a committed batch: a version line and a line of JSON, which is the same for every batch."""
        name = f"commits/{number}"
        remedy = f"""printf 'v1\\n{{"nextBatchWatermarkMs":0}}' > {self.root}/{name}"""
        if _object(self._lines(name, 2, remedy)[1]) is None:
            raise self._damaged(name, "is cut short", remedy)

    def metadata(self, *, is_committed: bool) -> None:
        """The file of the query's id, by which sinks know a repeated batch. Without one Spark refuses to start."""
        missing = self.filesystem.get_file_info(f"{self.root}/metadata").type == fs.FileType.NotFound
        if missing and is_committed:  # nothing is repeated: a start alone needs it, see ahead.py
            return
        try:
            content = _object(self._lines("metadata", 1, "")[0])
        except OffsetError as error:
            raise no_id(self.root, error.what) from error
        if "id" not in (content or {}):
            raise no_id(self.root, "a file of the checkpoint is cut short")

    def _lines(self, name: str, count: int, remedy: str) -> list[str]:
        try:
            with self.filesystem.open_input_stream(f"{self.root}/{name}") as stream:
                lines: list[str] = stream.read().decode().splitlines()
        except FileNotFoundError as error:
            raise self._damaged(name, "is missing", remedy) from error
        except OSError as error:
            raise self._damaged(name, f"cannot be read: {error}", "see that this user may read it") from error
        except UnicodeError as error:
            raise self._damaged(name, "is no text", remedy) from error
        if len(lines) < count:
            raise self._damaged(name, "is cut short" if lines else "is empty", remedy)
        return lines

    def _damaged(self, name: str, what: str, remedy: str) -> OffsetError:
        return OffsetError(f"a file of the checkpoint {what}", where=f"{self.root}/{name}", remedy=remedy)


def _object(line: str) -> dict[str, Any] | None:
    """A line's JSON object, None if it is none."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
