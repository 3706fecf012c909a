"""How far a first snapshot of several micro-batches has come: part of an offset, so that a restart goes on from there.

Each attempt reads under a snapshot of its own, which stands at a position of the log. The log begins where the first
attempt stood; of what a later one read, it tells again what that had already seen: `Skip` says what to leave out.
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
class Skip:
    """What was committed before the position `before` of a table's keys above `above` (None: all) was read already."""

    table: str
    above: Key | None
    before: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A first snapshot underway.

    `undo` is the place before the batch that this offset ends: its rows are lost if the driver dies before they are
    committed, so a restart goes on from there. None where that batch read no rows. `splits` counts those read so far,
    `of` those and what is left.
    """

    place: Place
    undo: Place | None = None
    skips: tuple[Skip, ...] = ()
    splits: int = 0
    of: int = 0

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return {
            "place": self.place.to_json(),
            "undo": None if self.undo is None else self.undo.to_json(),
            "skips": [[skip.table, _list(skip.above), skip.before] for skip in self.skips],
            "splits": self.splits,
            "of": self.of,
        }

    @staticmethod
    def from_json(node: dict[str, Any]) -> Reading:
        """The inverse of `to_json`."""
        undo = None if node["undo"] is None else Place.from_json(node["undo"])
        skips = (Skip(table, _key(above), before) for table, above, before in node["skips"])
        return Reading(Place.from_json(node["place"]), undo, tuple(skips), node["splits"], node["of"])

    def settled(self) -> Reading:
        """The state once the last rows are committed."""
        return replace(self, undo=None)

    def resumed(self, place: Place, position: int) -> Reading:
        """The state at a new attempt, which reads what is left from `place` on under a snapshot at that position."""
        whole = [None] * len(place.left)
        bounds = [place.last, *whole[1:]] if place.left else []
        skips = tuple(Skip(table, above, position) for table, above in zip(place.left, bounds, strict=True))
        return Reading(place, None, self.skips + skips, self.splits, self.of)

    def after(self, position: int) -> Reading | None:
        """What of it still matters to a log that is read up to `position`; None if nothing."""
        skips = tuple(skip for skip in self.skips if skip.before > position)
        return Reading(Place(()), None, skips) if skips else None

    def next_cut(self, position: int) -> int | None:
        """The first position behind `position` at which something is no longer left out: no stretch may cross it."""
        return min((skip.before for skip in self.skips if skip.before > position), default=None)


def _list(key: Key | None) -> list[str] | None:
    return None if key is None else list(key)


def _key(node: list[str] | None) -> Key | None:
    return None if node is None else tuple(node)
