"""Finds the value that the log did not repeat: in earlier changes of the row, also across changes of its key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Steps:
    """Deletions and puts in order, one array element a step.

    `row` is the change it is of, `key` the code of the key it concerns, `source` that of the key the row had before.
    """

    row: Numbers
    is_put: Flags
    key: Numbers
    source: Numbers

    def last_of_each_key(self) -> Numbers:
        """The last step of each key, in order."""
        _, from_end = np.unique(self.key[::-1], return_index=True)
        return np.sort(len(self.key) - 1 - from_end)

    def previous(self) -> Numbers:
        """For each step the one before it on its source key, -1 for none."""
        count = len(self.key)
        places = np.arange(count)
        ranked = np.sort(self.key * count + places)
        place = np.searchsorted(ranked, self.source * count + places) - 1
        before = ranked[np.maximum(place, 0)]
        return np.where((place >= 0) & (before // count == self.source), before % count, -1)


def resolve(steps: Steps, puts: Numbers, unchanged: Flags) -> tuple[Numbers, Flags, Numbers]:
    """For the puts, of one column: the step that holds its value; whether none does; its key in the target then.

    `unchanged` is by change. A deletion passes through: it is the first half of a change of key.
    """
    previous = steps.previous()
    open_ended = ~steps.is_put | unchanged[steps.row]
    place = np.arange(len(previous))
    pointer = np.where(open_ended & (previous >= 0), previous, place)
    while True:  # each round doubles the distance
        further = pointer[pointer]
        if np.array_equal(further, pointer):
            break
        pointer = further
    holder = pointer[puts]
    return holder, open_ended[holder], steps.source[holder]
