"""Reads a table again in chunks: its rows are collected in a copy, which replaces the replica's rows when all are read.

Rows that the source no longer has are gone then, and columns have the types that they have by now, which merging the
chunks into the replica could not bring about. The copy is a table `<root>/_reading/<folder of the table>`. It
begins with the first chunk and follows the log from there on, as the replica does meanwhile. Its commits carry Records
of their own, so a repeated micro-batch is written once. A replica that is missing or empty takes the chunks directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from tailrace.model.change import ChangeBatch, SnapshotRead
from tailrace.model.schema_change import DROP
from tailrace.sinks.replica import contents, descriptions, notes, writing
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.folders import folder
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.marks import Record, TableProgress, newest
from tailrace.sinks.replica.modes import CHANGES
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.table import Lake, Table
from tailrace.sinks.replica.target import Target
from tailrace.spark import failpoint

FOLDER = "_reading"
_REMOVED = "the copy of the table that was being read was removed"


def place_of(batch: MicroBatch, table: str) -> Target:
    """Where the copy of a table lies."""
    return Target(f"{batch.root.rstrip('/')}/{FOLDER}", table, batch.storage_options)


def folders(root: str, storage_options: Mapping[str, str]) -> frozenset[str]:
    """The folders of tables that are read again below a root. Raises SinkError."""
    return retried(Target(root, FOLDER, storage_options), _lake(root, storage_options).names)


def _lake(root: str, storage_options: Mapping[str, str]) -> Lake:
    return lake_at(root, storage_options).below(FOLDER)


def discard(root: str, table: str, storage_options: Mapping[str, str]) -> None:
    """Remove the copy of a table, if there is one. Raises SinkError."""
    remove = partial(_lake(root, storage_options).remove, folder(table))
    retried(Target(root, table, storage_options), remove)


def tables(root: str, storage_options: Mapping[str, str]) -> tuple[str, ...]:
    """The tables that are read again below a root. Raises SinkError."""
    tables_again, lake = [], _lake(root, storage_options)
    for name in folders(root, storage_options):
        copy = retried(Target(root, name, storage_options), partial(lake.open, name))
        record = None if copy is None else newest(copy)
        tables_again += [] if record is None else [record.table]
    return tuple(tables_again)


def forget(batch: MicroBatch, *tables: str) -> None:
    """Remove the copies of tables that get other rows at once, so that what is read of them is read from the beginning.

    Raises SinkError.
    """
    for table in tables:
        discard(batch.root, table, batch.storage_options)


@dataclass
class Copy:
    """The copy of a table that is being read, which may not be there."""

    batch: MicroBatch
    table: str

    def read(self, part: Part) -> TableReport:
        """Bring a chunk into the copy, or into a replica without rows. Raises SinkError."""
        read = _requested(part)
        replica = self.batch.target(self.table)

        def attempt() -> TableReport:
            target = replica.open()
            record = self.batch.progress(self.table, target).record
            # A log of changes begins again with a note that all rows are gone, and needs no copy.
            is_direct = replica.mode.kind == CHANGES or (record is not None and record.request == read.request)
            if is_direct or (read.begins and (target is None or not target.count())):
                progress = self.batch.progress(self.table, target)
                return contents.bring(self.batch, replica, target, progress, part, replaces=read.begins, is_copy=True)
            return self._collected(part, target, record)

        return replace(retried(replica, attempt), begun=read.request if read.begins else None)

    def _collected(self, part: Part, replica: Table | None, record: Record | None) -> TableReport:
        """Bring a chunk into the copy, or begin it again."""
        place, read = place_of(self.batch, self.table), _requested(part)
        target = place.open()
        progress = self.batch.progress(self.table, target)
        is_open = progress.record is not None and progress.record.request == read.request
        if not read.begins and not is_open:
            is_done = record is not None and read.request in record.snapshots
            return TableReport(self.table, lacking=None if is_done else _REMOVED)
        if not is_open:
            progress.record = Record(self.batch.query_id, self.table, self.batch.batch_id)
        report = contents.bring(
            self.batch, place, target, progress, part, replaces=read.begins, beside=replica, is_copy=True
        )
        return replace(report, version=None, table_id=None)

    def described(self, note: ChangeBatch) -> TableReport:
        """Give the copy the columns that the source has by now, as its rows may all be older. Raises SinkError."""
        place = place_of(self.batch, self.table)
        assert note.structure is not None
        structure = note.structure
        if structure.is_gone:
            self.remove()
            return TableReport(self.table)

        def attempt() -> TableReport:
            target = place.open()
            if target is None:
                return TableReport(self.table)
            renamed = notes.renamed(target, self.batch.target(self.table).open(), structure)
            why = notes.fit(self.batch, place, target, note, renamed)
            return TableReport(self.table, lacking="; ".join(why) or None)

        return retried(place, attempt)

    def follow(self, part: Part) -> TableReport:
        """Bring changes of the log into the copy, if there is one, as into the replica. Raises SinkError."""
        place = place_of(self.batch, self.table)

        def attempt() -> TableReport:
            target = place.open()
            if target is None:
                return TableReport(self.table)
            progress = self.batch.progress(self.table, target)
            if part.change is not None and part.change.kind == DROP:
                self.remove()
                return TableReport(self.table)
            if part.change is not None:
                contents.alter(self.batch, place, target, progress, part)
                return TableReport(self.table)
            beside = self.batch.target(self.table).open()
            report = contents.bring(self.batch, place, target, progress, part, beside=beside, is_copy=True)
            return TableReport(self.table, lacking=report.lacking)

        return retried(place, attempt)

    def end(self, part: Part) -> TableReport:
        """Replace the replica's rows by the copy's, once all are read. Raises SinkError."""
        read = _requested(part)
        place, replica = place_of(self.batch, self.table), self.batch.target(self.table)

        def attempt() -> TableReport:
            copy, target = place.open(), replica.open()
            progress = self.batch.progress(self.table, target)
            record = progress.record
            has_ended = record is not None and read.request in (record.request, *record.snapshots)
            report = TableReport(self.table, ended=read.request)
            if has_ended:
                return writing.identified(report, self._cured(target))
            held = None if copy is None else self.batch.progress(self.table, copy).record
            if copy is None or held is None or held.request != read.request:
                if read.total:
                    return TableReport(self.table, lacking=_REMOVED, stopped=read.request)
                copy, held = None, Record(self.batch.query_id, self.table, self.batch.batch_id, request=read.request)
            if copy is not None or target is not None:
                target = self._cured(self._replaced(replica, target, progress, copy, held))
            return writing.identified(report, target)

        report = retried(replica, attempt)
        failpoint.reach("after-swap")
        self.remove()
        return report

    def _cured(self, target: Table | None) -> Table | None:
        """The replica, which has all rows now."""
        if target is not None:
            descriptions.cured(target, writing.repeated(target, self.batch, self.table))
        return target

    def remove(self) -> None:
        """Remove the copy. Raises SinkError."""
        discard(self.batch.root, self.table, self.batch.storage_options)

    def _replaced(
        self, replica: Target, target: Table | None, progress: TableProgress, copy: Table | None, held: Record
    ) -> Table | None:
        """The replica, once its rows are those of the copy; it has none where there is no copy."""
        contents.swap(self.batch, replica, target, progress, copy, held)
        return replica.open()


def _requested(part: Part) -> SnapshotRead:
    assert part.extent.read is not None
    return part.extent.read
