"""Notifications before and after each split of a first or blocking snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tailrace.connectors.notifications import (
    COMPLETED,
    INITIAL,
    STARTED,
    Notice,
    chunk_begins,
    chunk_ends,
    in_progress,
    scanned,
)
from tailrace.javalike.hashes import set_order
from tailrace.model.table_id import TableId

Notices = tuple[Notice, ...]


def around_splits(
    splits: Sequence[TableId],
    order: Sequence[TableId],
    captured: Sequence[TableId],
    counts: Mapping[TableId, int],
    *,
    chunked: bool,
    steps: Mapping[TableId, int],
) -> tuple[list[tuple[Notices, Notices]], Notices]:
    """For each split, given by its table, what is sent before and after it; the latter result if there is none.

    `order` has all tables that are read; those without splits are empty. With an empty `captured` notices do not list
    tables. `counts` has the rows of tables that several splits read; of the others the reader knows them. Splits are
    chunks in the words of notifications; those of tables of one are sent only if all are (`chunked`). `steps` has the
    rows of each split but the last, 0 where they are not known.
    """
    # What is read is listed as Debezium does: in the order of a Java HashSet.
    tables, parts = ",".join(map(str, captured)), Counter(splits)
    read = ",".join(set_order(list(map(str, order)))) if captured else ""
    waiting: Notices = (Notice(INITIAL, STARTED),)
    around: list[tuple[Notices, Notices]] = []
    for table in order:
        name = str(table)
        waiting += (in_progress(INITIAL, name, read),)
        done = scanned(INITIAL, name, tables)
        if table in counts:
            done = done.with_rows(counts[table])
        total = max(parts[table], 1)
        for index in range(total):
            after: Notices = (done,) if index == total - 1 else ()
            if chunked or total > 1:
                waiting += (chunk_begins(name, index, total, index * steps.get(table, 0)),)
                after = (chunk_ends(name, index, total, tables), *after)
            if table in parts:
                around.append((waiting, after))
                waiting = ()
            else:
                waiting += tuple(notice.with_rows(0) for notice in after)
    waiting += (Notice(INITIAL, COMPLETED),)
    if around:
        around[-1] = around[-1][0], around[-1][1] + waiting
        waiting = ()
    return around, waiting
