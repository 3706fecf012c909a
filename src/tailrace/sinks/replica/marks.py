"""The record in each commit of a replica's table: how far into the log it goes, so a repeat is not written twice.

A commit holds a Record: how far into the log the table is written, by transactions and the rows of the last one. What a
micro-batch brings is compared with that row by row. The number of the micro-batch does not count: after a checkpoint
was copied back, or lost its newest files, another range of the log comes under a known number.
"""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

from tailrace.errors import SinkError
from tailrace.model.change import Position, SnapshotRead
from tailrace.sinks.replica.table import Mark, Table

# Our key in the JSON text of a commit.
_KEY = "tailrace"
# The text of a commit that changes no rows has this key as well.
_REPEATED = "repeated"
_PART_BITS = 16
_OPTIONAL = ("aside", "request", "tally")
# Snapshots of a table that are remembered; a later one than that resumes none of them.
_SNAPSHOTS = 16


@dataclass(frozen=True, order=True, slots=True)
class LogPlace:
    """A place in a table's log: behind all transactions committed before `commit`, and so many rows of that one."""

    commit: Position
    rows: int


@dataclass(frozen=True, slots=True)
class Extent:
    """What a part of a micro-batch covers of a table: the log from one place to another (None: none of it), and rows
    of a snapshot. `number` counts the table's parts in the micro-batch.
    """

    number: int
    before: LogPlace | None = None
    upto: LogPlace | None = None
    read: SnapshotRead | None = None

    def without(self, place: LogPlace | None) -> Extent:
        """The extent without the log before a place."""
        further = place is not None and (self.before is None or self.before < place)
        return replace(self, before=place) if further else self

    @staticmethod
    def from_json(node: dict[str, Any]) -> Extent:
        """The inverse of `dataclasses.asdict`."""
        before, upto, read = node["before"], node["upto"], node["read"]
        return Extent(
            node["number"],
            None if before is None else LogPlace(**before),
            None if upto is None else LogPlace(**upto),
            None if read is None else SnapshotRead(**read),
        )


@dataclass(frozen=True, slots=True)
class Aside:
    """Since when and of what a table is set aside; `snapshot` is the last one in its replica then, None for none."""

    since: str
    error: str
    snapshot: str | None


@dataclass(frozen=True, slots=True)
class Tally:
    """What the mode of a table goes on from, see modes.py: the latest time of a change (microseconds since 1970, None
    before the first one), and how many rows of snapshots the table has been given.
    """

    mode: str
    clock: int | None = None
    reads: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """What a table holds of a query's changes.

    The log is written up to `place`. `read` and `part` are the last SnapshotRead written and the number of its last
    part, `snapshots` those whose rows have replaced the table's content. `batch` is for people. `aside` is set in the
    records of dead letters, see aside.py. `request` is the signal whose chunks the table holds, see again.py. `tally`
    is set unless the table is kept equal to its source.
    """

    query: str
    table: str
    batch: int
    place: LogPlace | None = None
    _: KW_ONLY
    read: str | None = None
    part: int = -1
    snapshots: tuple[str, ...] = ()
    aside: Aside | None = None
    request: str | None = None
    tally: Tally | None = None

    def to_text(self, *, is_repeated: bool = False) -> str:
        """The text that a commit carries. Releases that know nothing of tables set aside read a replica's as well.

        `is_repeated`: for a commit of maintenance, which has the record only in case the log is cleaned.
        """
        node = {name: each for name, each in asdict(self).items() if name not in _OPTIONAL or each is not None}
        return json.dumps({_KEY: node, **({_REPEATED: True} if is_repeated else {})})

    @staticmethod
    def from_text(text: object) -> Record | None:
        """The record in a commit's text, None for a commit of another writer."""
        try:
            node = json.loads(str(text))[_KEY]
            place, aside, tally = node["place"], node.get("aside"), node.get("tally")
            return Record(
                **{
                    **node,
                    "place": None if place is None else LogPlace(**place),
                    "snapshots": tuple(node["snapshots"]),
                    "aside": None if aside is None else Aside(**aside),
                    "tally": None if tally is None else Tally(**tally),
                }
            )
        except (ValueError, TypeError, KeyError):
            return None


def newest(target: Table, query: str | None = None) -> Record | None:
    """The record of the newest commit that has one (of a query); commits of other writers have none.

    A commit of maintenance may follow newer ones than the one whose record it repeats, as delta-rs tries it again on
    top of those of a process that was started meanwhile. So its record counts only where no other is left.
    """
    repeated = None
    for commit in target.commits():
        text = commit.text
        record = Record.from_text(text)
        if record is None or query not in (None, record.query):
            continue
        if _REPEATED not in json.loads(str(text)):
            return record
        repeated = repeated or record
    return repeated


class TableProgress:
    """What a table holds of one query's changes when a micro-batch comes to it."""

    def __init__(self, target: Table | None, query: str, table: str, batch: int, repeats: bool | None = None) -> None:
        self._target, self._query, self._table, self._batch, self._repeats = target, query, table, batch, repeats
        self._app = f"tailrace/{query}"
        self._version = None if target is None else target.written(self._app)
        self.record = None
        if target is not None and self._version is not None:
            self.record = newest(target, query)
        if self.record is not None and self.record.table != table:
            raise SinkError(
                f"its folder holds the replica of {self.record.table}",
                where=f"{table}, {target.uri if target else ''}",
                remedy="use another `path` for one of the two tables; a file system that ignores case cannot hold "
                "tables whose names differ by case alone",
            )

    @property
    def place(self) -> LogPlace | None:
        """How far the log is written, None if that is unknown."""
        return None if self.record is None else self.record.place

    def has_log(self, extent: Extent) -> bool:
        """Whether the log of an extent is written."""
        if extent.upto is None:
            return True
        return self._has_number(extent) if self.record is None else _reaches(self.record.place, extent.upto)

    def has_read(self, extent: Extent) -> bool:
        """Whether the rows of a snapshot are written."""
        if extent.read is None:
            return True
        if self.record is None:
            return self._has_number(extent)
        return self.record.read == extent.read.id and self.record.part >= extent.number

    def has(self, extent: Extent) -> bool:
        """Whether a whole extent is written."""
        return self.has_log(extent) and self.has_read(extent)

    def refuse_overlap(self, extent: Extent) -> None:
        """Raises SinkError where the log of an extent is written in part."""
        if self.place is None or extent.upto is None or (extent.before is not None and self.place <= extent.before):
            return
        raise SinkError(
            "another process wrote a part of the micro-batch meanwhile",
            where=self._table,
            remedy="let one query alone write this table, then start again: what is written is left out",
        )

    def begins(self, extent: Extent) -> bool:
        """Whether the extent has the first rows of a snapshot, which replace the table's content."""
        if extent.read is None or extent.read.snapshot is None or self._target is None:
            return extent.read is not None and extent.read.snapshot is not None
        snapshots = () if self.record is None else self.record.snapshots
        return extent.read.snapshot not in snapshots

    @property
    def tally(self) -> Tally | None:
        """That of the table, whichever query wrote it; None for a table that is not there or is kept equal."""
        record = self.record if self.record is not None or self._target is None else newest(self._target)
        return None if record is None else record.tally

    @property
    def mode(self) -> str | None:
        """The mode in which the table was written, None for one that no pipeline has written."""
        if self._target is None or (self.record is None and newest(self._target) is None):
            return None
        return "latest" if self.tally is None else self.tally.mode

    def mark(self, extent: Extent, tally: Tally | None = None) -> Mark:
        """What the commit that writes an extent says."""
        record = self.record or Record(self._query, self._table, self._batch)
        record = replace(record, batch=self._batch, place=extent.upto or record.place)
        record = replace(record, tally=tally or self.tally)
        if extent.read is not None:
            record = replace(record, read=extent.read.id, part=extent.number)
            record = record if extent.read.request is None else replace(record, request=extent.read.request)
        if extent.read is not None and extent.read.snapshot is not None and self.begins(extent):
            position = extent.read.position
            begun = extent.upto or (None if position is None else LogPlace(position, 0))
            record = replace(record, place=begun, snapshots=(*record.snapshots, extent.read.snapshot)[-_SNAPSHOTS:])
        version = max(self._number(extent), -1 if self._version is None else self._version + 1)
        return Mark(self._app, version, record.to_text())

    def swapped(self, copy: Record, tally: Tally | None = None) -> Mark:
        """What the commit says that replaces the table's rows by those of a copy, whose chunks a signal asked for."""
        record = self.record or Record(self._query, self._table, self._batch)
        assert copy.request is not None
        snapshots = (*record.snapshots, copy.request)[-_SNAPSHOTS:]
        places = [place for place in (record.place, copy.place) if place is not None]
        record = replace(
            record, batch=self._batch, place=max(places, default=None), snapshots=snapshots, tally=tally or self.tally
        )
        version = max(self._batch << _PART_BITS, -1 if self._version is None else self._version + 1)
        return Mark(self._app, version, record.to_text())

    def _has_number(self, extent: Extent) -> bool:
        """Whether a commit that another writer has removed from the table's log has written it.

        Of such commits the micro-batch's number alone is left. Raises SinkError for a number that cannot be there.
        """
        if self._version is None:
            return False
        written = self._version >> _PART_BITS
        if written > self._batch or (written == self._batch and self._repeats is False):
            raise SinkError(
                f"the replica holds a micro-batch {written}, and the checkpoint is before it: it was copied back, or "
                "its newest files were lost. Which range of the source's log that was is not known: the table's own "
                "log no longer has the commit that says it, as another writer cleaned it",
                where=self._table,
                remedy="put the newest checkpoint back; or use another `checkpoint`, which takes a new snapshot",
            )
        return self._version >= self._number(extent)

    def _number(self, extent: Extent) -> int:
        return self._batch << _PART_BITS | extent.number


def _reaches(place: LogPlace | None, wanted: LogPlace) -> bool:
    return place is not None and place >= wanted
