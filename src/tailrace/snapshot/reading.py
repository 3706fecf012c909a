"""How far a first snapshot of several micro-batches has come: part of an offset, so that a restart goes on from there.

Each attempt reads under a snapshot of its own, which stands at a position of the log. Before a later attempt reads what
is left, the log is read up to that position, so that no key ever steps back; tables still untouched are left out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reading stands: `left` are the tables not wholly read, in order.

    Of the first among them, `last` is the key (as text) up to which it is read, None: it begins; `began` the position
    of the snapshot its first rows were read under; `storage` the number of its file then, which a TRUNCATE changes.
    `is_whole`: nothing at all is read yet.
    """

    left: tuple[str, ...]
    last: Key | None = None
    began: int | None = None
    storage: int | None = None
    is_whole: bool = False

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        last = _list(self.last)
        return {
            "left": list(self.left),
            "last": last,
            "began": self.began,
            "storage": self.storage,
            "whole": self.is_whole,
        }

    @staticmethod
    def from_json(node: dict[str, Any]) -> Place:
        """The inverse of `to_json`."""
        return Place(tuple(node["left"]), _key(node["last"]), node["began"], node["storage"], node["whole"])

    def anew(self) -> Place:
        """The same with the first table read from its beginning."""
        return Place(self.left)


@dataclass(frozen=True, slots=True)
class Reading:
    """A first snapshot underway.

    `undo` is the place before the batch that this offset ends: its rows are lost if the driver dies before they are
    committed, so a restart goes on from there. None where that batch read no rows. `touched` are the tables of which
    rows may have been read; `splits` counts those read so far, `of` those and what is left. The process that reads
    began at `since_ms` (milliseconds since 1970), when `since_splits` were read.
    """

    place: Place
    undo: Place | None = None
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
        undo = None if node["undo"] is None else Place.from_json(node["undo"])
        since = node.get("since_ms"), node.get("since_splits", 0)
        return Reading(Place.from_json(node["place"]), undo, tuple(node["touched"]), node["splits"], node["of"], *since)

    def settled(self) -> Reading:
        """The state once the last rows are committed."""
        return replace(self, undo=None)

    @property
    def untouched(self) -> tuple[str, ...]:
        """The tables of which no row was read."""
        return tuple(table for table in self.place.left if table not in self.touched)


def _list(key: Key | None) -> list[str] | None:
    return None if key is None else list(key)


def _key(node: list[str] | None) -> Key | None:
    return None if node is None else tuple(node)
