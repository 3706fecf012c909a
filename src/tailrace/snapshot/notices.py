"""What is told around the splits of a first snapshot, and in the same words of a blocking one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tailrace.events.notifications import COMPLETED, INITIAL, STARTED, Notice, in_progress, scanned
from tailrace.transforms.murmur import java

Notices = tuple[Notice, ...]


def around_splits(
    splits: Sequence[str], order: Sequence[str], captured: Sequence[str], counts: Mapping[str, int]
) -> tuple[list[tuple[Notices, Notices]], Notices]:
    """For each split, given by its table's name, what is told before and after it; the latter result if there is none.

    `order` has all tables that are read; those without splits are empty. `counts` has the rows of tables that several
    splits read; of the others the reader knows them.
    """
    tables, read, parts = ",".join(captured), ",".join(_by_hash(order)), Counter(splits)
    waiting: Notices = (Notice(INITIAL, STARTED),)
    around: list[tuple[Notices, Notices]] = []
    for name in order:
        waiting += (in_progress(INITIAL, name, read),)
        done = scanned(INITIAL, name, tables)
        if name not in parts:
            waiting += (done.with_rows(0),)
            continue
        around += [(waiting, ()), *[((), ())] * (parts[name] - 1)]
        around[-1] = around[-1][0], (done.with_rows(counts[name]) if name in counts else done,)
        waiting = ()
    waiting += (Notice(INITIAL, COMPLETED),)
    if around:
        around[-1] = around[-1][0], around[-1][1] + waiting
        waiting = ()
    return around, waiting


def _by_hash(names: Sequence[str]) -> list[str]:
    """In the order of a Java HashSet made of them: Debezium tells what is in progress beside that."""
    least = max(len(names) * 4 // 3 + 1, 16)
    buckets = 1 << (least - 1).bit_length()

    def bucket(name: str) -> int:
        number = java(name, "string") & 0xFFFFFFFF
        return (number ^ number >> 16) & (buckets - 1)

    return sorted(names, key=bucket)
