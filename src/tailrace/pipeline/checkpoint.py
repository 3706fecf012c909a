"""Reads a pipeline's position from its checkpoint, without Spark: the offsets last planned and committed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from tailrace.errors import OffsetError


@dataclass(frozen=True)
class Batch:
    """A micro-batch of the checkpoint: its number and the source's offset at its end."""

    number: int
    offset: dict[str, Any]


@dataclass(frozen=True)
class Position:
    """The newest batch that was planned and the newest that is committed; None where there is none."""

    planned: Batch | None
    committed: Batch | None

    @property
    def pipeline(self) -> str | None:
        """The name that the offsets give the pipeline, None before the first one."""
        newest = self.planned or self.committed
        return None if newest is None else newest.offset.get("pipeline")

    @property
    def offsets(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The offsets of the committed batch and of the planned one."""
        return self.committed.offset if self.committed else None, self.planned.offset if self.planned else None


def position(checkpoint: str) -> Position:
    """The position held in `checkpoint`, a path or URL. Raises OffsetError if its files cannot be understood."""
    filesystem, root = fs.FileSystem.from_uri(checkpoint)
    planned = _newest(filesystem, f"{root}/offsets")
    committed = _newest(filesystem, f"{root}/commits")
    return Position(
        planned=None if planned is None else _batch(filesystem, root, planned),
        committed=None if committed is None else _batch(filesystem, root, committed),
    )


def _newest(filesystem: fs.FileSystem, folder: str) -> int | None:
    """The highest number among a folder's files."""
    try:
        files = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    except FileNotFoundError:  # it was made while it was looked for
        return None
    return max((int(file.base_name) for file in files if file.base_name.isdigit()), default=None)


def _batch(filesystem: fs.FileSystem, root: str, number: int) -> Batch:
    """Spark's file of a batch: a version line, a line of metadata, and a line for each source's offset."""
    path = f"{root}/offsets/{number}"
    try:
        with filesystem.open_input_stream(path) as stream:
            lines = stream.read().decode().splitlines()
        return Batch(number, json.loads(lines[2]))
    except (OSError, ValueError, IndexError) as error:
        raise OffsetError("cannot be read as an offset of Tailrace's source", where=path) from error
