"""Cuts batches by bytes: small enough to encode at once, and small enough for Spark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tailrace.model.change import ChangeBatch

_INPUT_BYTES = 32 << 20  # guessed
_OUTPUT_BYTES = 16 << 20  # guessed


def pieces(batch: ChangeBatch) -> Iterator[ChangeBatch]:
    """The batch in pieces small enough that no column's text can overflow: halves of halves, down to one row."""
    if batch.rows.nbytes <= _INPUT_BYTES or len(batch) == 1:
        if len(batch):
            yield batch
        return
    half = len(batch) // 2
    yield from pieces(batch.slice(0, half))
    yield from pieces(batch.slice(half, len(batch) - half))


def cuts(sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose bytes do not pass the limit, or of one row that does."""
    ends = np.cumsum(sizes)
    start, done = 0, 0
    while start < len(sizes):
        stop = max(start + 1, int(np.searchsorted(ends, done + _OUTPUT_BYTES, side="right")))
        yield start, stop
        start, done = stop, int(ends[stop - 1])
