"""Decides whether the replica's rows of some keys equal the source's, by reading both in rounds while both change.

Readings alternate: source, target, source, target, ... Each reading of the target contains all that the reading of the
source before it shows. What follows from them: docs/decisions/0015-wrong-rows-by-row-versions.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tailrace.sinks.replica.compare import Flags
from tailrace.sinks.replica.digest import Hashes

OPEN, EQUAL, MISSING, SURPLUS, DIFFERENT = range(5)


@dataclass(frozen=True)
class SeenRows:
    """What the source held of some keys: for each the hash of its row and what names this version; 0: no row."""

    rows: Hashes
    versions: Hashes


class RowOutcomes:
    """What is known of each of some keys: OPEN until it is certain whether the row is equal."""

    def __init__(self, count: int) -> None:
        self.kinds: npt.NDArray[np.int64] = np.full(count, OPEN, np.int64)
        self._claimed: Flags = np.zeros(count, np.bool_)
        self._target: Hashes = np.zeros(count, np.uint64)

    @property
    def open(self) -> Flags:
        """The keys that are not decided."""
        undecided: Flags = self.kinds == OPEN
        return undecided

    def update(self, before: SeenRows, target: Hashes, after: SeenRows, chosen: Flags) -> None:
        """Decide the chosen keys, as far as one round of readings allows; `before` is the `after` of the round before.

        A row is equal if it was the source's at either reading. It differs if the source's row was the same version at
        three readings in a row, and the target's, the same one twice, is another.
        """
        equal = (target == before.rows) | (target == after.rows)
        differs = ~equal & (before.versions == after.versions)
        again = differs & self._claimed & (target == self._target)
        kind = np.where(target == 0, MISSING, np.where(before.rows == 0, SURPLUS, DIFFERENT))
        self.kinds = np.where(chosen & equal, EQUAL, np.where(chosen & again, kind, self.kinds))
        self._claimed, self._target = differs, target
