"""Protocols for user-supplied snapshot plug-ins; `<mode>.custom.name` names the entry point of each.

The questions are those of Debezium's interfaces Snapshotter, SnapshotLock and SnapshotQuery. Entry points are
factories: they are called with the connector's properties, a dict of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Snapshotter(Protocol):
    """`snapshot.mode=custom` (group `tailrace.snapshotters`): whether tables and log are read."""

    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """Whether the tables are read at a start. An unfinished snapshot is read again whatever this returns."""

    def should_stream(self) -> bool:
        """Whether the log is read after that."""

    def should_snapshot_on_data_error(self) -> bool:
        """Whether the tables are read again where the server no longer has the log from the position on."""


class SnapshotLock(Protocol):
    """`snapshot.locking.mode=custom` (group `tailrace.snapshot_locks`)."""

    def __call__(self, timeout_ms: int, table: str) -> str | None:
        """The statement that locks a table (its name is quoted) for the time of the snapshot, None for no lock."""


class SnapshotQuery(Protocol):
    """`snapshot.query.mode=custom` (group `tailrace.snapshot_queries`)."""

    def __call__(self, table: str, columns: Sequence[str]) -> str | None:
        """The SELECT that reads these columns (names are quoted), None to leave the table out of the snapshot."""
