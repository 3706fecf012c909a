"""Counts changes by operation, and transactions, where the log is read; Spark adds the counts up in its progress.

Beside the counts are the newest changes of a chunk, see newest.py, of which Spark takes one chunk's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import ConfigError
from tailrace.model.change import COMMIT, CREATE, DELETE, MESSAGE, READ, TRUNCATE, UPDATE, ChangeBatch, Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The name of the observed metrics in Spark's progress.
NAME = "tailrace"
OPERATIONS = {
    "reads": READ,
    "creates": CREATE,
    "updates": UPDATE,
    "deletes": DELETE,
    "truncates": TRUNCATE,
    "messages": MESSAGE,
}
TRANSACTIONS = "transactions"
COUNTS = "counts"
NEWEST = "newest"
_SUMS = (*OPERATIONS, TRANSACTIONS)
COUNTS_TYPE = pa.struct([*((name, pa.int64()) for name in _SUMS), (NEWEST, pa.string())])


def operations(batch: ChangeBatch) -> dict[str, int]:
    """How many changes of each operation a batch has; none of a schema change."""
    if batch.schema_change is not None or not len(batch):
        return dict.fromkeys(OPERATIONS, 0)
    # Each operation is one letter: the column's bytes are the letters. Hashing them as texts takes ten times as long.
    column = batch.rows.column("op")
    first, end = np.frombuffer(column.buffers()[1], np.int32)[[column.offset, column.offset + len(column)]]
    letters = np.bincount(np.frombuffer(column.buffers()[2], np.uint8)[first:end], minlength=256)
    return {name: int(letters[ord(operation)]) for name, operation in OPERATIONS.items()}


class Transactions:
    """Counts the transactions of one read, whose chunks come in the order of the log."""

    def __init__(self) -> None:
        self._last: Position | None = None

    def count(self, batches: Sequence[ChangeBatch]) -> int:
        """How many begin in a chunk that have changes in it; the last one may go on in the next chunk."""
        # Changes of a transaction stand together in a batch: few of its rows are left to look at.
        commits = [pc.run_end_encode(batch.rows.column(COMMIT)).values for batch in batches if _is_of_log(batch)]
        if not commits:
            return 0
        distinct = pc.unique(pa.chunked_array(commits))
        is_continued = self._last is not None and pc.index(distinct, self._last).as_py() >= 0
        self._last = pc.max(distinct).as_py()
        return len(distinct) - is_continued


def _is_of_log(batch: ChangeBatch) -> bool:
    """Whether its rows are of transactions: logical messages, which need none, have no column of commits."""
    return batch.read is None and batch.schema_change is None and len(batch) > 0 and batch.column(COMMIT) is not None


def observe(frame: DataFrame) -> DataFrame:
    """A stream of the shape `arrow` or `event` whose progress has the counts as observed metrics named `tailrace`.

    Of the shape `arrow` there is `newest` as well. Rows of the shape `event` do not say which transaction they are of:
    they are counted by operation alone. Raises ConfigError for other shapes.
    """
    from pyspark.sql import functions as F

    if COUNTS in frame.columns:
        sums = {name: F.sum(f"{COUNTS}.{name}") for name in _SUMS}
    elif "op" in frame.columns and "topic" in frame.columns:
        sums = {name: F.sum((F.col("op") == operation).cast("bigint")) for name, operation in OPERATIONS.items()}
    else:
        raise ConfigError(
            f"rows of the shape arrow or event are expected, these have the columns {', '.join(frame.columns)}",
            where="tailrace.observe",
            remedy="read the stream with the option shape=arrow or shape=event, and pass the frame as it is loaded",
        )
    metrics = [F.coalesce(total, F.lit(0)).alias(name) for name, total in sums.items()]
    if COUNTS in frame.columns:
        text = F.col(f"{COUNTS}.{NEWEST}")
        metrics.append(F.max_by(text, F.when(text.isNotNull(), F.col("sequence"))).alias(NEWEST))
    return frame.observe(NAME, *metrics)
