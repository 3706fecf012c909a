"""The part of a snapshot split that every connector shares: a part of one table, and its notifications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeVar

from tailrace.connectors.notifications import Notice
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.model.change import ChangeBatch, SnapshotRead
from tailrace.model.table import TableId


@dataclass(frozen=True)
class TableSplit:
    """Implements SnapshotSplit for part of a table.

    `began` is the name of the snapshot that the table's first rows were read under, if that was an earlier one;
    `before` and `after` are sent around its rows, `first` and `last` are the markers of its first and last row, `rows`
    are those of each range of the table but the last, where they are known. `read_id` is that of SnapshotRead.
    """

    moment: Any
    table: TableId
    bytes: int = 0
    began: str | None = None
    _: KW_ONLY
    before: tuple[Notice, ...] = ()
    after: tuple[Notice, ...] = ()
    first: str | None = None
    last: str | None = None
    rows: int = 0
    read_id: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The table that it reads."""
        return (str(self.table),)

    @property
    def resume_point(self) -> SnapshotPlace | None:
        """None unless a connector reads tables in several splits."""
        return None

    @property
    def snapshot(self) -> str:
        """The name of the snapshot that the table's first rows were read under."""
        return self.began or str(self.moment)

    def announced(self: Split, notices: tuple[Notice, ...]) -> Split:
        """The split with more notices before its first row."""
        return replace(self, before=(*notices, *self.before))

    def read_at(self, position: Any) -> SnapshotRead:
        """What its rows belong to, where they have every change before `position`."""
        return SnapshotRead(self.read_id, self.snapshot, position)

    def marked(self, batches: Iterable[ChangeBatch]) -> Iterator[ChangeBatch]:
        """The batches of its rows, with the markers on the first and the last row; each waits for the next one."""
        held: ChangeBatch | None = None
        rows = 0
        for batch in batches:
            rows += len(batch)
            if held is None:
                held = batch.with_snapshot_marker(0, self.first)
            else:
                yield held
                held = batch
        if held is not None:
            # The very first row keeps its marker even as the last of its table, not as the last of all.
            keeps_first = rows == 1 and self.first == "first" and self.last != "last"
            yield held if keeps_first else held.with_snapshot_marker(len(held) - 1, self.last)


Split = TypeVar("Split", bound=TableSplit)
