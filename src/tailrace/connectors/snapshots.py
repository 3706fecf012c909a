"""Types that the algorithms of snapshot/ and the databases' packages exchange."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tailrace.errors import SourceAwayError, SourceError
from tailrace.model.change import ChangeBatch
from tailrace.model.table import TableId

# A key as texts, with nulls where a key that a signal names has them.
PagingKey = tuple[str | None, ...]
Flags = npt.NDArray[np.bool_]


class Fence(Protocol):
    """What separates a chunk of an incremental snapshot from the log: the one place that knows visibility.

    Databases differ in kind here. One compares the transaction of a change with the snapshot that the chunk was read
    under, another the position of the change with those of two marks that it wrote around the chunk, a third the time
    of the change with the time of the read.
    """

    def supersedes(self, batch: ChangeBatch) -> Flags:
        """For each change of the log whether the chunk was read without it, so that it replaces the chunk's row."""


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """Where a reading stands: `left` are the tables not wholly read, in order.

    Of the first among them, `last` is the key (as texts, None for a null) up to which it is read, None: it begins;
    `began` the name of the snapshot its first rows were read under; `storage` the number of its file then, which a
    TRUNCATE changes.
    `is_whole`: nothing at all is read yet.
    """

    left: tuple[str, ...]
    last: PagingKey | None = None
    began: str | None = None
    storage: int | None = None
    is_whole: bool = False

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        last = key_json(self.last)
        return {
            "left": list(self.left),
            "last": last,
            "began": self.began,
            "storage": self.storage,
            "whole": self.is_whole,
        }

    @staticmethod
    def from_json(node: dict[str, Any]) -> SnapshotPlace:
        """The inverse of `to_json`."""
        last = key_of(node["last"])
        return SnapshotPlace(tuple(node["left"]), last, node["began"], node["storage"], node["whole"])

    def of(self, table: TableId) -> SnapshotPlace | None:
        """The place itself if it is inside this table, whose reading then goes on behind `last`."""
        return self if self.last is not None and str(table) == self.left[0] else None

    def restarted(self) -> SnapshotPlace:
        """The same with the first table read from its beginning."""
        return SnapshotPlace(self.left)


def check_width(keys: Iterable[Sequence[str]], width: int, where: str) -> None:
    """Raise SourceError if a key of a signal has not so many parts."""
    if any(len(key) != width for key in keys):
        raise SourceError(
            f"the table's key has {width} columns, and a key of the signal has another number",
            where=where,
            remedy="send each key as a list with one text for each column of the key",
        )


def key_json(key: PagingKey | None) -> list[str | None] | None:
    """A key for an offset."""
    return None if key is None else list(key)


def key_of(node: list[str | None] | None) -> PagingKey | None:
    """The inverse of `key_json`."""
    return None if node is None else tuple(node)


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk: its rows (ChangeBatch as IPC bytes, for a split), its fence as text, and the position it reaches to.

    `identity` are the columns that tell its rows apart, of those that the log has in old images. `request` is the
    signal that asked for all rows of the table, None if it asked for some; `begins`: these are the first ones.
    """

    rows: bytes
    fence: str
    end: Any
    identity: tuple[str, ...]
    request: str | None = None
    begins: bool = False


class Unread(Exception):
    """A table that is not read: why, and the status in the words of notifications."""

    def __init__(self, why: str, status: str) -> None:
        super().__init__(why)
        self.status = status


class SnapshotGone(SourceAwayError):
    """A snapshot that cannot be read under any more."""
