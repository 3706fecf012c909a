"""Plans the splits of a snapshot, for every database: tables, resume point, markers of rows, notices.

How a table is cut is the database's (Cuts in connectors/snapshot_ports.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.notifications import Notice, is_wanted
from tailrace.connectors.snapshot_ports import Cuts, SnapshotHandle, Snapshots
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.model.table import TableId
from tailrace.snapshot.split_notices import around_splits


def planned(
    server: Snapshots,
    config: Config,
    handle: SnapshotHandle,
    wanted: Mapping[str, str | None] | None = None,
    place: SnapshotPlace | None = None,
) -> Sequence[Any]:
    """The SnapshotSplits of all captured tables, of those `wanted`, or of what is left at `place`.

    Raises SnapshotGone if the handle can no longer be read under.
    """
    return server.cut(config, handle, wanted, place, lambda cuts: _Plan(config, cuts, wanted, place).splits())


@dataclass(frozen=True)
class _Plan:
    config: Config
    cuts: Cuts
    wanted: Mapping[str, str | None] | None
    place: SnapshotPlace | None

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the snapshot is read yet."""
        return self.place is None or self.place.is_whole

    def splits(self) -> list[Any]:
        """The splits in the order in which their rows come."""
        tables = self._tables()
        self.cuts.prepare(tables)
        splits: list[Any] = []
        empty: list[TableId] = []
        begun = set() if self.is_whole else {self.cuts.unit(table) for table in tables[:1]}
        for table in tables:
            resumed = None if self.place is None else self.place.of(table)
            of_table = self.cuts.splits(table, resumed)
            if of_table is None:
                continue
            unit = self.cuts.unit(table)
            if not of_table and resumed is None:
                empty.append(table)
            splits += self._marked(of_table, resumed, is_first=unit not in begun)
            begun.add(unit)
        splits = self._with_last(splits)
        if not is_wanted(self.config):
            return [*splits, *(self.cuts.without_rows(empty, ()) if empty else ())]
        return self._with_notices(splits, empty, tables)

    def _tables(self) -> list[TableId]:
        """The tables to read, in order. What is left at a place and not captured any more is left out."""
        if self.wanted is not None:
            return self.cuts.in_order([table for table in self.cuts.tables() if str(table) in self.wanted])
        tables = self.cuts.to_read()
        if self.place is None:
            return tables
        # Two tables may have one name: "a.b".c and a."b.c".
        by_name: dict[str, list[TableId]] = {}
        for table in tables:
            by_name.setdefault(str(table), []).append(table)
        return [table for name in dict.fromkeys(self.place.left) for table in by_name.get(name, [])]

    def _marked(self, of_table: Sequence[Any], resumed: SnapshotPlace | None, *, is_first: bool) -> list[Any]:
        """A table's splits with the markers of its edges, or with the snapshot that began it if it is `resumed`."""
        splits = list(of_table)
        if splits and self.cuts.marks_tables:
            splits[-1] = replace(splits[-1], last="last_in_data_collection")
        if resumed is not None:
            # A SELECT that was configured meanwhile is read from its beginning, under this snapshot.
            return [split if split.resume_point is None else replace(split, began=resumed.began) for split in splits]
        if splits and self.cuts.marks_tables:
            splits[0] = replace(splits[0], first="first" if is_first else "first_in_data_collection")
        return splits

    def _with_last(self, splits: list[Any]) -> list[Any]:
        """The splits, the last of each unit that has a row with the marker of the last row."""
        ended = set()
        for number in range(len(splits) - 1, -1, -1):
            unit = self.cuts.unit(splits[number].table)
            if unit not in ended and self.cuts.has_rows(splits[number]):
                splits[number] = replace(splits[number], last="last")
                ended.add(unit)
        return splits

    def _with_notices(self, splits: list[Any], empty: list[TableId], tables: list[TableId]) -> list[Any]:
        """The splits with what is sent around them: the notices of each unit, also of one without tables."""
        read = {*empty, *(split.table for split in splits)}
        order = [table for table in tables if table in read]
        is_all = self.wanted is None and self.is_whole
        units = [] if is_all else list(dict.fromkeys(map(self.cuts.unit, tables)))
        listed, counts = self._listed(tables), self._counts(splits)
        with_notices: list[Any] = []
        waiting: tuple[Notice, ...] = ()
        for unit in units or self.cuts.units():
            mine = [split for split in splits if self.cuts.unit(split.table) == unit]
            ordered, named = ([each for each in all_ if self.cuts.unit(each) == unit] for all_ in (order, listed))
            around, rest = around_splits(
                [split.table for split in mine],
                ordered,
                named,
                counts,
                chunked=self.cuts.is_chunked,
                steps={split.table: split.rows for split in mine},
            )
            if mine:
                mine = [
                    replace(split, before=notices[0], after=notices[1])
                    for split, notices in zip(mine, around, strict=True)
                ]
                with_notices += [mine[0].announced(waiting), *mine[1:]]
                waiting = ()
            waiting += rest
        if with_notices and waiting:
            with_notices[-1] = replace(with_notices[-1], after=(*with_notices[-1].after, *waiting))
            waiting = ()
        return [*with_notices, *(self.cuts.without_rows(empty, waiting) if empty or waiting else ())]

    def _listed(self, tables: list[TableId]) -> list[TableId]:
        """The tables that notices list."""
        if not self.cuts.lists_tables:
            return []
        lists = TableFilter.from_config(self.config).lists
        return tables if self.wanted is not None else [table for table in self.cuts.tables() if lists(table)]

    def _counts(self, splits: list[Any]) -> dict[TableId, int]:
        """The rows of tables of which no task reads all: those that several splits read, or that were read before."""
        parts = Counter(split.table for split in splits)
        several = {split.table: split for split in splits if parts[split.table] > 1 or split.began is not None}
        counts = {table: self.cuts.count(split) for table, split in several.items()}
        return {table: count for table, count in counts.items() if count is not None}
