"""Writes one table's parts of a micro-batch: into its replica, its dead letters, or the copy that is being read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tailrace.errors import DecodeError, TableError
from tailrace.model.change import ChangeBatch
from tailrace.sinks.replica import aside, notes
from tailrace.sinks.replica.again import Copy
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.folders import is_among
from tailrace.sinks.replica.marks import Extent
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport


class TableWriter:
    """The parts of a table come in order, to one writer. `is_aside`: an earlier part may have set the table aside."""

    def __init__(self, batch: MicroBatch, table: str) -> None:
        self.is_aside = False
        self._batch, self._table = batch, table
        self._copy = Copy(batch, table)
        self._has_copy = is_among(table, batch.copies)
        self._has_rows = False

    def write(self, part: Part) -> TableReport:
        """Write a part, whatever of it is not written yet. Raises SinkError."""
        report = self._written(part)
        self._has_rows = self._has_rows or bool(part.batches)
        self.is_aside = self.is_aside or report.aside is not None
        return replace(report, is_there=report.is_there or bool(part.batches))

    def _written(self, part: Part) -> TableReport:
        if part.error is not None:
            return self._refused(part, part.error)
        if part.request is not None:
            self._has_copy = True
            return self._into_copy(lambda: self._copy.end(part) if part.note is not None else self._copy.read(part))
        if part.note is not None:
            return self._noted(part.note)
        put_aside = self._batch.put_aside.get(self._table)
        if put_aside is not None and not self.is_aside and part.extent.read is None:
            report = aside.put(self._batch, self._table, part, put_aside)
        else:
            report = aside.write(self._batch, self._table, part, is_aside=self.is_aside)
        if self._has_copy and (part.extent.read is None or part.extent.read.snapshot is None):
            followed = self._into_copy(lambda: self._copy.follow(part))
            report = replace(report, lacking=report.lacking or followed.lacking)
        return report

    def _noted(self, note: ChangeBatch) -> TableReport:
        followed = TableReport(self._table)
        if self._has_copy and note.structure is not None:
            # First, as the replica then stores the description that both are compared with.
            followed = self._into_copy(lambda: self._copy.described(note))
        try:
            report = notes.apply(self._batch, self._table, note, follows_rows=self._has_rows)
        except (TableError, DecodeError) as error:
            if not self._batch.sets_aside:
                raise
            return aside.put(self._batch, self._table, Part(Extent(0)), str(error))
        return replace(report, lacking=report.lacking or followed.lacking)

    def _refused(self, part: Part, error: str) -> TableReport:
        """Set the table aside that no replica can be of. Raises TableError where that ends the run."""
        if not self._batch.sets_aside:
            raise TableError(error)
        is_known = self.is_aside or is_among(self._table, self._batch.aside)
        return aside.put(self._batch, self._table, part, None if is_known and part.extent.read is None else error)

    def _into_copy(self, write: Callable[[], TableReport]) -> TableReport:
        """Write to the copy. One that cannot take its rows is no copy any more."""
        try:
            return write()
        except (TableError, DecodeError) as error:
            self._copy.remove()
            self._has_copy = False
            return TableReport(self._table, lacking=f"it could not be read again: {error.what}")
