"""Decides what the next batch does beside the log: the first row of this table that applies.

| work | when | the batch reads |
|---|---|---|
| wait | transactions are open that began before a table was added | the log |
| catch_up | the log has more than the batch may read | the log |
| tables | a blocking snapshot is next | the log up to a moment; the batch after it the tables as of then |
| chunk | an incremental snapshot is next, and not paused | the log up to the end of a chunk, and the chunk |
| nothing | nothing is in the queue, or it is paused | the log |

The order matters: a table that is read while such transactions are open lacks what they commit, and one that is read
during a backlog is compared with a part of the log that is not read yet. Any work may follow any other, as signals come
at any time. A restart loses the rows that a batch has read and not committed, so it begins with the state before them
(`Progress.undone`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tailrace.snapshot.progress import Progress
from tailrace.snapshot.signals import BLOCKING, INCREMENTAL


class BatchWork(Enum):
    """What the next batch does beside the log; see the module's table."""

    WAIT = "wait"
    CATCH_UP = "catch_up"
    TABLES = "tables"
    CHUNK = "chunk"
    NOTHING = "nothing"


def work(progress: Progress, *, is_behind: bool, has_ended: Callable[[int], bool]) -> BatchWork:
    """What the next batch does in a state. `has_ended` tells whether the transactions up to a number have ended."""
    if progress.queue and progress.wait is not None and not has_ended(progress.wait):
        return BatchWork.WAIT
    if is_behind:
        return BatchWork.CATCH_UP
    if progress.is_next(BLOCKING):
        return BatchWork.TABLES
    return BatchWork.CHUNK if progress.is_next(INCREMENTAL) else BatchWork.NOTHING
