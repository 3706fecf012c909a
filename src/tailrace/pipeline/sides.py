"""Reads one table of source and replica as hashes of rows: the source at one moment, the replica at one version."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa

from tailrace.connectors.base import Key
from tailrace.connectors.ports import Admin, Position, SourceNow
from tailrace.connectors.snapshots import PagingKey
from tailrace.errors import SourceError
from tailrace.model.table import TableSchema
from tailrace.override import override
from tailrace.sinks.replica.compare import BucketTotals, Digests, Flags, KeyRange, ReplicaVersion, Suspects, one_a_key
from tailrace.sinks.replica.digest import Hashes, value_hashes
from tailrace.sinks.replica.row_outcomes import SeenRows
from tailrace.sinks.replica.target import Target


class ColumnsChanged(SourceError):
    """The table was altered, or the replica followed it, between two readings of one comparison."""


@dataclass(frozen=True)
class KeyQuery:
    """Keys whose rows differed, with their texts for queries of the source; `accepted` are those that it accepts."""

    suspects: Suspects
    texts: list[Key]
    accepted: Flags


class Doing:
    """Hears what is done to tables; of itself it tells nobody."""

    def begin(self, table: str, doing: str, expected: int) -> None:
        """Something is done to a table, which has about so many rows to read; 0: nobody knows."""

    def read(self, table: str, rows: int) -> None:
        """So many more rows are read."""


class TablePart:
    """A part of a table: about `size` rows behind a key (texts of whole numbers) in its order; None: the first ones.

    The first reading of the source decides where it ends: at the key `until`, which later readings do not go beyond.
    """

    def __init__(self, key: tuple[str, ...], after: PagingKey | None, size: int) -> None:
        self.until: PagingKey | None = None
        self.is_read = self.is_last = False
        self._key, self._after, self._size = key, after, size

    def rows(self, now: SourceNow, table: TableSchema) -> Iterator[pa.Table]:
        """The rows of the source."""
        if not self.is_read:
            rows, end = now.page(table, self._after, None, self._size)
            self.is_read, self.is_last = True, rows.num_rows < self._size
            self.until = None if self.is_last else end
            yield rows
            return
        last = self._after
        while True:
            rows, end = now.page(table, last, self.until, self._size)
            yield rows
            if end is None or rows.num_rows < self._size:
                return
            last = end

    @override
    def __str__(self) -> str:
        behind = "the first key" if self._after is None else f"the key after ({', '.join(map(str, self._after))})"
        until = "the last" if self.until is None else f"({', '.join(map(str, self.until))})"
        return f"{', '.join(self._key)} from {behind} to {until}"

    @property
    def range(self) -> KeyRange:
        """The same rows in the replica, once it is known where the part ends."""
        after, until = (
            None if each is None else tuple(int(part) for part in each if part is not None)
            for each in (self._after, self.until)
        )
        return KeyRange(self._key, after, until)


class Sides:
    """One table or a part of it, under the columns that it has when the comparison begins."""

    def __init__(
        self, admin: Admin, place: Target, table: TableSchema, doing: Doing | None = None, part: TablePart | None = None
    ) -> None:
        self.table = table
        replica, self.layout = ReplicaVersion.of(place, table)
        self.is_missing = replica.is_missing
        self._columns = replica.columns
        self.expected = replica.count()
        self._admin = admin
        self._place = place
        self._doing = doing or Doing()
        self._part = part

    def surplus(self, expected: Collection[str]) -> list[str]:
        """The columns that the replica alone has, without some that it is to have."""
        names = {*self.table.row_type.names, *expected}
        return [name for name in self._columns if name not in names]

    def source(self) -> Iterator[Digests]:
        """All rows of the source as it is now."""
        with self._admin.now() as now:
            yield from self._heard(self._rows(now), "the source is read once more")

    def totals(self) -> tuple[BucketTotals, Position]:
        """What the source holds now, by buckets, and a position by which the log has it."""
        with self._admin.now() as now:
            return BucketTotals(self._heard(self._rows(now), "the source is read")), now.horizon

    def target_totals(self) -> BucketTotals:
        """What the target holds now, by buckets."""
        return BucketTotals(self._heard(self.target().rows(), "the replica is read"))

    def _heard(self, rows: Iterator[Digests], doing: str) -> Iterator[Digests]:
        table = str(self.table.id)
        self._doing.begin(table, doing, self.expected)
        for each in rows:
            self._doing.read(table, len(each.whole))
            yield each
        self._doing.begin(table, "the pipeline is waited for", 0)

    def target(self) -> ReplicaVersion:
        """The target as it is now."""
        replica, layout = ReplicaVersion.of(self._place, self.table)
        if layout != self.layout:
            raise self._changed()
        return replica if self._part is None else replica.within(self._part.range)

    def ask(self, suspects: Suspects) -> KeyQuery:
        """Keys of rows of either side, as texts for queries of the source."""
        with self._admin.now() as now:
            wanted = now.texts(suspects.keys)
            table = now.table(self.table.id)
            keys = list(now.understood(table, self.layout.key, wanted)) if wanted else [suspects.keys]
        hashes = self.layout.key_hashes(pa.concat_tables(keys))
        # The text of a null is a value of some columns, and an error of others: the source is not queried for it.
        nulls = reduce(np.logical_or, (np.asarray(column.is_null(), bool) for column in suspects.keys.columns))
        return KeyQuery(suspects, wanted, (hashes == suspects.hashes) & ~nulls)

    def seen(self, asked: KeyQuery, chosen: Flags) -> tuple[SeenRows, Position]:
        """What the source holds now of the chosen keys, and a position by which the log has it."""
        rows, versions = (np.zeros(len(asked.suspects), np.uint64) for _ in range(2))
        wanted = [asked.texts[place] for place in np.flatnonzero(chosen)]
        with self._admin.now() as now:
            self._verify(now)
            for table_rows, version in now.rows_of(self.table, self.layout.key, wanted):
                digests = self.layout.digests(table_rows)
                places, is_place = asked.suspects.places(digests.keys)
                rows[places[is_place]] = digests.whole[is_place]
                versions[places[is_place]] = value_hashes(version)[is_place]
            return SeenRows(rows, versions), now.horizon

    def held(self, suspects: Suspects) -> Hashes:
        """What the target holds now of some keys: the hashes of their rows, 0 where there is none."""
        rows = np.zeros(len(suspects), np.uint64)
        hashes = [(digests.keys, digests.whole) for digests in self.target().rows_of(suspects.hashes)]
        keys, whole = one_a_key([pair[0] for pair in hashes], [pair[1] for pair in hashes])
        rows[suspects.places(keys)[0]] = whole
        return rows

    def _rows(self, now: SourceNow) -> Iterator[Digests]:
        self._verify(now)
        for rows in now.rows(self.table) if self._part is None else self._part.rows(now, self.table):
            yield self.layout.digests(rows)

    def _verify(self, now: SourceNow) -> None:
        """Raises ColumnsChanged if the table has another schema than at the start."""
        if now.table(self.table.id) != self.table:
            raise self._changed()

    def _changed(self) -> ColumnsChanged:
        return ColumnsChanged("its columns changed meanwhile", where=str(self.table.id), remedy="compare it again")
