"""Row outcomes from readings of source and target in turns: a row is decided only if it is certain."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.sinks.replica.row_outcomes import DIFFERENT, EQUAL, MISSING, OPEN, SURPLUS, RowOutcomes, SeenRows

# A source's reading is (version, row), 0 for no row; a target's is a row.
Reading = tuple[int, int]
GONE: Reading = (0, 0)


def outcome(first: Reading, *turns: tuple[int, Reading]) -> int:
    """The outcome of one key after turns of the target's row and the source's next reading."""
    outcomes = RowOutcomes(1)
    before = seen(first)
    for row, reading in turns:
        after = seen(reading)
        outcomes.update(before, np.array([row], np.uint64), after, outcomes.open)
        before = after
    return int(outcomes.kinds[0])


def seen(reading: Reading) -> SeenRows:
    """A source's reading of one key."""
    version, row = reading
    return SeenRows(np.array([row], np.uint64), np.array([version], np.uint64))


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
def test_a_row_is_wrong_only_after_three_readings_of_one_version(
    first: Reading, turns: list[tuple[int, Reading]], expected: int
) -> None:
    assert outcome(first, *turns) == expected


def test_only_chosen_keys_are_decided() -> None:
    outcomes, nothing = RowOutcomes(2), np.zeros(2, np.uint64)
    outcomes.update(SeenRows(nothing, nothing), nothing, SeenRows(nothing, nothing), np.array([True, False]))
    assert outcomes.kinds.tolist() == [EQUAL, OPEN]
