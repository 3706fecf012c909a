"""The state of a first snapshot of several micro-batches: part of an offset, so that a restart resumes there.

Each attempt reads under a snapshot of its own, which has a position in the log. Before a later attempt reads what
is left, the log is read up to that position, so that no key ever steps back; tables still untouched are left out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tailrace.connectors.snapshots import SnapshotPlace


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of a first snapshot that is not finished.

    `undo` is the place before the batch that this offset ends: its rows are lost if the driver dies before they are
    committed, so a restart continues from there. None where that batch read no rows. `touched` are the tables of which
    rows may have been read; `splits` counts those read so far, `of` those and what is left. The process that reads
    began at `since_ms` (milliseconds since 1970), when `since_splits` were read.
    """

    place: SnapshotPlace
    undo: SnapshotPlace | None = None
    touched: tuple[str, ...] = ()
    splits: int = 0
    of: int = 0
    since_ms: int | None = None
    since_splits: int = 0

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return {
            "place": self.place.to_json(),
            "undo": None if self.undo is None else self.undo.to_json(),
            "touched": list(self.touched),
            "splits": self.splits,
            "of": self.of,
            "since_ms": self.since_ms,
            "since_splits": self.since_splits,
        }

    @staticmethod
    def from_json(node: dict[str, Any]) -> Reading:
        """The inverse of `to_json`."""
        undo = None if node["undo"] is None else SnapshotPlace.from_json(node["undo"])
        since = node.get("since_ms"), node.get("since_splits", 0)
        return Reading(
            SnapshotPlace.from_json(node["place"]), undo, tuple(node["touched"]), node["splits"], node["of"], *since
        )

    def settled(self) -> Reading:
        """The state once the last rows are committed."""
        return replace(self, undo=None)

    @property
    def untouched(self) -> tuple[str, ...]:
        """The tables without a row that was read."""
        return tuple(table for table in self.place.left if table not in self.touched)
