"""What is told around the splits of a first snapshot, and in the same words of a blocking one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tailrace.events.notifications import COMPLETED, INITIAL, STARTED, Notice, in_progress, scanned

Notices = tuple[Notice, ...]


def around_splits(
    splits: Sequence[str], captured: Sequence[str], empty: Sequence[str], counts: Mapping[str, int]
) -> tuple[list[tuple[Notices, Notices]], Notices]:
    """For each split, given by its table's name, what is told before and after it; and what is told at the end.

    The latter only if there are empty tables, which come last, or no splits. `counts` has the rows of tables that
    several splits read; of the others the reader knows them.
    """
    tables, read = ",".join(captured), ",".join([*dict.fromkeys(splits), *empty])
    waiting: Notices = (Notice(INITIAL, STARTED),)
    around: list[tuple[Notices, Notices]] = []
    for place, name in enumerate(splits):
        if name not in splits[:place]:
            waiting += (in_progress(INITIAL, name, read),)
        after: Notices = ()
        if name not in splits[place + 1 :]:
            done = scanned(INITIAL, name, tables)
            after = (done.with_rows(counts[name]) if name in counts else done,)
        around.append((waiting, after))
        waiting = ()
    for name in empty:
        waiting += (in_progress(INITIAL, name, read), scanned(INITIAL, name, tables).with_rows(0))
    waiting += (Notice(INITIAL, COMPLETED),)
    if around and not empty:
        around[-1] = around[-1][0], around[-1][1] + waiting
        waiting = ()
    return around, waiting
