"""The part of a snapshot split that every connector shares: a part of one table, and its notifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tailrace.connectors.notifications import Notice
from tailrace.connectors.snapshot_notices import around_splits
from tailrace.connectors.snapshots import Place
from tailrace.model.change import SnapshotRead
from tailrace.model.table import TableId


@dataclass(frozen=True)
class TableSplit:
    """Implements SnapshotSplit for part of a table.

    `began` is the name of the snapshot that the table's first rows were read under, if that was an earlier one;
    `before` and `after` are sent around its rows, `read_id` is that of SnapshotRead.
    """

    moment: Any
    table: TableId
    bytes: int = 0
    began: str | None = None
    before: tuple[Notice, ...] = ()
    after: tuple[Notice, ...] = ()
    read_id: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """See SnapshotSplit.names."""
        return (str(self.table),)

    @property
    def resume_point(self) -> Place | None:
        """See SnapshotSplit.resume_point; None unless a connector reads tables in several splits."""
        return None

    @property
    def snapshot(self) -> str:
        """The name of the snapshot that the table's first rows were read under."""
        return self.began or str(self.moment)

    def announced(self: Split, notices: tuple[Notice, ...]) -> Split:
        """See SnapshotSplit.announced."""
        return replace(self, before=(*notices, *self.before))

    def read_at(self, position: Any) -> SnapshotRead:
        """What its rows belong to, where they have every change before `position`."""
        return SnapshotRead(self.read_id, self.snapshot, position)


Split = TypeVar("Split", bound=TableSplit)


def with_notices(
    splits: Sequence[Split],
    order: Sequence[TableId],
    listed: Sequence[TableId],
    counts: Mapping[str, int],
    *,
    chunked: bool,
    steps: Mapping[str, int] | None = None,
) -> list[Split]:
    """The splits with the notices around them; see around_splits."""
    names = [str(split.table) for split in splits]
    around, _ = around_splits(names, [*map(str, order)], [*map(str, listed)], counts, chunked=chunked, steps=steps)
    return [replace(split, before=one[0], after=one[1]) for split, one in zip(splits, around, strict=True)]
