"""Handles changes that cannot be processed: raises, or logs and skips (`event.processing.failure.handling.mode`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.config import Config
from tailrace.config.options.events import EVENT_PROCESSING_FAILURE_HANDLING_MODE
from tailrace.errors import DecodeError, TailraceError
from tailrace.model.change import ChangeBatch, SnapshotRead, note
from tailrace.model.cuts import pieces
from tailrace.model.table import TableSchema

log = logging.getLogger(__name__)

T = TypeVar("T")
Integers = npt.NDArray[np.int64]

# Debezium logs skipped events only at debug level; nothing is lost silently here.
_LEVELS = {"warn": logging.WARNING, "skip": logging.INFO}


class FailureHandling:
    """What becomes of a faulty change: `mode` is fail, warn or skip. For one read, in order."""

    def __init__(self, mode: str = "fail") -> None:
        self._level = _LEVELS.get(mode)
        # The first change that was left out since `notes` was asked last, and how many there were.
        self._first, self._count = "", 0

    @staticmethod
    def of(config: Config) -> FailureHandling:
        """As the configuration says."""
        return FailureHandling(config[EVENT_PROCESSING_FAILURE_HANDLING_MODE])

    def left_out(self, error: TailraceError, what: str) -> None:
        """Tell that a change is left out. Raises the error where it has to stop the pipeline."""
        if self._level is None:
            raise error
        why = str(error).splitlines()[0]
        log.log(self._level, "a change of %s is left out: %s", what, why)
        self._first = self._first or f"a change of {what} was left out: {why}"
        self._count += 1

    def notes(self, table: TableSchema, read: SnapshotRead | None = None) -> list[ChangeBatch]:
        """For sinks that keep the table's content: a note if changes were left out since this was asked last.

        `read`: they were rows of a snapshot.
        """
        if not self._count:
            return []
        lacking = self._first if self._count == 1 else f"{self._first}, and {self._count - 1:,} more"
        self._first, self._count = "", 0
        return [note(table, read=read, lacking=lacking)]

    def sound(self, count: int, build: Callable[[Integers], T], name: Callable[[int], str]) -> T | None:
        """What `build` makes of the rows 0 to count that it can build, None without any; `name` gives a row's place.

        Faulty rows are found by halving, which costs nothing where there are none.
        """
        rows = np.arange(count, dtype=np.int64)
        try:
            return build(rows)
        except DecodeError as error:
            if self._level is None:
                raise
            faulty = list(_faulty(rows, build, error))
        for row, fault in faulty:
            self.left_out(fault, name(row))
        rest = np.setdiff1d(rows, [row for row, _ in faulty])
        return build(rest) if len(rest) else None

    def encoded(
        self, batch: ChangeBatch, encode: Callable[[ChangeBatch], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """What `encode` makes of a batch, piece by piece. Only a change that is a piece alone can be too large."""
        for piece in pieces(batch):
            try:
                yield from encode(piece)
            except DecodeError as error:  # noqa: PERF203  # a piece is megabytes
                if len(piece) > 1:
                    raise
                self.left_out(error, f"{batch.table.id} at {piece.rows.column('source')[0].as_py()}")


def _faulty(rows: Integers, build: Callable[[Integers], T], error: DecodeError) -> Iterator[tuple[int, DecodeError]]:
    """The rows that cannot be built even alone, and why; `error` is what building all of them raised."""
    if len(rows) == 1:
        yield int(rows[0]), error
        return
    for half in np.array_split(rows, 2):
        try:
            build(half)
        except DecodeError as inner:  # noqa: PERF203  # only where there are faults
            yield from _faulty(half, build, inner)
