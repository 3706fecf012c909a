"""Blocking snapshots on PostgreSQL: plans the batches that read whole tables which a signal asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailrace.config import Config
from tailrace.connectors.postgres.server.connect import is_lost, is_passing, is_transient, server_errors
from tailrace.connectors.postgres.snapshot import splits
from tailrace.connectors.postgres.snapshot.exported import Export, SnapshotGone, export_aside
from tailrace.connectors.postgres.snapshot.rows import EmptySplit, SnapshotSplit
from tailrace.connectors.retry import retrying
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0


@dataclass(frozen=True)
class Planned:
    """The next batch: it ends at `end`, where a snapshot is exported, or reads `splits` under that snapshot.

    `refused` is why the tables can never be read as the signal asks. With none of them the time has not come yet.
    """

    end: int | None = None
    splits: Sequence[SnapshotSplit | EmptySplit] | None = None
    refused: Exception | None = None


class BlockingSnapshots:
    """Plans for one planner process, and holds the exported snapshot between two batches."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._export: Export | None = None
        self._not_before = 0.0

    def plan(self, tables: Mapping[str, str | None], from_lsn: int) -> Planned:
        """Plan the batch that begins at `from_lsn`: first one up to an exported snapshot, then one of the tables.

        Raises SourceError when the server stays out of reach.
        """
        if time.monotonic() < self._not_before:
            return Planned()
        try:
            return retrying(self.config, lambda: self._attempt(tables, from_lsn), is_transient)
        except (SourceError, UnicodeError) as error:
            if is_lost(error):
                raise
            is_exported = self._export is not None
            self.close()
            if is_exported and not is_passing(error):
                return Planned(refused=error)
            self._not_before = time.monotonic() + RETRY_SECONDS
            said = (", ".join(tables), error, RETRY_SECONDS)
            log.warning("the blocking snapshot of %s cannot begin: %s; the next try is in %.0f s", *said)
            return Planned()

    def close(self) -> None:
        """Release the exported snapshot."""
        if self._export is not None:
            self._export.close()
            self._export = None

    def _attempt(self, tables: Mapping[str, str | None], from_lsn: int) -> Planned:
        end = self._exported(from_lsn)
        if end > from_lsn:
            return Planned(end)
        assert self._export is not None
        try:
            with server_errors("the tables cannot be read"):
                return Planned(from_lsn, splits.plan(self.config, self._export, tables))
        except SnapshotGone as error:
            if is_transient(error):
                raise
            # The position has nothing to do with the tables: another snapshot at a later one is as good.
            log.warning("%s; the snapshot is exported again", error.what)
            self.close()
            return Planned(self._exported(from_lsn))

    def _exported(self, from_lsn: int) -> int:
        """The position of the exported snapshot; one that does not lie at `from_lsn` is replaced by a new one."""
        if self._export is None or self._export.lsn != from_lsn:
            self.close()
            with server_errors("a snapshot cannot be exported"):
                # Once: the stream waits meanwhile, and the next try comes anyway.
                self._export = export_aside(self.config, once=True)
        return self._export.lsn
