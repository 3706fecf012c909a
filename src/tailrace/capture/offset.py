"""The offset as the planner uses it: the position in the log and the state of the snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tailrace.connectors.offset import Reached, fields, readable, stored
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.reading import Reading


@dataclass(frozen=True, slots=True)
class Offset(Reached):
    """How far a pipeline has come; the only state there is.

    `progress` is the state of snapshots that signals requested, None without a signal channel. `reading` is how
    far the first snapshot has come, None if one micro-batch reads it.
    """

    progress: Progress | None = None
    reading: Reading | None = None

    def at(self, **changes: Any) -> Offset:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def to_json(self, text: Callable[[Any], str]) -> dict[str, Any]:
        """The offset as Spark stores it; `text` prints a position."""
        snapshots = None if self.progress is None else self.progress.to_json()
        return stored(self, text, snapshots, None if self.reading is None else self.reading.to_json())

    @staticmethod
    def from_json(node: Mapping[str, Any], connector: str, source: str, parse: Callable[[str], Any]) -> Offset:
        """The inverse of `to_json`. Raises OffsetError for one of another source or version, or that cannot be read."""
        snapshots, reading = node.get("snapshots"), node.get("reading")
        values = fields(node, connector, source, parse)
        with readable():
            return Offset(
                **values,
                progress=None if snapshots is None else Progress.from_json(dict(snapshots)),
                reading=None if reading is None else Reading.from_json(dict(reading)),
            )
