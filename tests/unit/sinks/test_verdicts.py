"""Verdicts on keys from readings in turns: certain ones come, others stay open."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.sinks.replica.verdicts import DIFFERENT, EQUAL, MISSING, OPEN, SURPLUS, Seen, Verdicts

# A source's reading is (version, row), 0 for no row; a target's is a row.
Reading = tuple[int, int]
GONE: Reading = (0, 0)


def verdict(first: Reading, *turns: tuple[int, Reading]) -> int:
    """The verdict on one key after turns of the target's row and the source's next reading."""
    verdicts = Verdicts(1)
    before = seen(first)
    for row, reading in turns:
        after = seen(reading)
        verdicts.judge(before, np.array([row], np.uint64), after, verdicts.open)
        before = after
    return int(verdicts.kinds[0])


def seen(reading: Reading) -> Seen:
    """A source's reading of one key."""
    version, row = reading
    return Seen(np.array([row], np.uint64), np.array([version], np.uint64))


@pytest.mark.parametrize(
    ("first", "turns", "expected"),
    [
        ((1, 5), [(5, (1, 5))], EQUAL),
        (GONE, [(0, GONE)], EQUAL),
        # On its way: the target has the row as it was, or as it became.
        ((1, 5), [(5, (2, 6))], EQUAL),
        ((1, 5), [(6, (2, 6))], EQUAL),
        # Once is not enough.
        ((1, 5), [(6, (1, 5))], OPEN),
        ((1, 5), [(6, (1, 5)), (6, (1, 5))], DIFFERENT),
        ((1, 5), [(0, (1, 5)), (0, (1, 5))], MISSING),
        (GONE, [(7, GONE), (7, GONE)], SURPLUS),
        # A row that comes and goes between the readings is another each time, or the source's version is.
        (GONE, [(7, GONE), (8, GONE)], OPEN),
        ((1, 5), [(6, (2, 5)), (6, (2, 5))], OPEN),
        ((1, 5), [(6, (2, 5)), (6, (2, 5)), (6, (2, 5))], DIFFERENT),
        ((1, 5), [(6, (1, 5)), (7, (1, 5)), (6, (1, 5))], OPEN),
        # What rests in the end is decided, what never does is not.
        ((1, 5), [(9, (2, 6)), (9, (3, 7)), (7, (3, 7))], EQUAL),
        ((1, 5), [(9, (2, 6)), (9, (3, 7)), (9, (4, 8))], OPEN),
    ],
)
def test_verdicts(first: Reading, turns: list[tuple[int, Reading]], expected: int) -> None:
    assert verdict(first, *turns) == expected


def test_only_chosen_keys_are_judged() -> None:
    verdicts, nothing = Verdicts(2), np.zeros(2, np.uint64)
    verdicts.judge(Seen(nothing, nothing), nothing, Seen(nothing, nothing), np.array([True, False]))
    assert verdicts.kinds.tolist() == [EQUAL, OPEN]
