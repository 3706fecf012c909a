"""Plans blocking snapshots: batches that read the whole tables which a signal requested."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.config import Config
from tailrace.connectors.retry import retrying
from tailrace.connectors.snapshot_ports import OnDemandSnapshots, SnapshotHandle, SnapshotSplit
from tailrace.connectors.snapshots import SnapshotGone
from tailrace.errors import TailraceError
from tailrace.snapshot.splits import planned

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0  # guessed


@dataclass(frozen=True)
class Planned:
    """The next batch: it ends at `end`, where a snapshot is opened, or reads `splits` under that snapshot.

    `refused` is why the tables can never be read as the signal asks. With none of them the time has not come yet.
    """

    end: Any = None
    splits: Sequence[SnapshotSplit] | None = None
    refused: Exception | None = None


class BlockingSnapshots:
    """Plans for one planner process, and holds the open snapshot between two batches."""

    def __init__(self, config: Config, server: OnDemandSnapshots) -> None:
        self.config = config
        self._server = server
        self._failures = server.failures
        self._export: SnapshotHandle | None = None
        self._not_before = 0.0

    def plan(self, tables: Mapping[str, str | None], start: Any) -> Planned:
        """Plan the batch that begins at `start`: first one up to an exported snapshot, then one of the tables.

        Raises SourceError when the server stays out of reach.
        """
        if time.monotonic() < self._not_before:
            return Planned()
        try:
            return retrying(self.config, lambda: self._attempt(tables, start), self._failures.is_transient)
        except Exception as error:
            # No signal may stop the pipeline; but a lost connection is not the signal's fault.
            if self._failures.is_lost(error):
                raise
            is_exported = self._export is not None
            self.close()
            if is_exported and not self._failures.is_passing(error):
                if not isinstance(error, TailraceError):
                    log.exception("a blocking snapshot of %s cannot be planned", ", ".join(tables))
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

    def _attempt(self, tables: Mapping[str, str | None], start: Any) -> Planned:
        end = self._exported(start)
        if end > start:
            return Planned(end)
        assert self._export is not None
        try:
            with self._failures.translated("the tables cannot be read"):
                return Planned(start, planned(self._server, self.config, self._export, tables))
        except SnapshotGone as error:
            if self._failures.is_transient(error):
                raise
            # Any snapshot will do: one at a later position is exported instead.
            log.warning("%s; the snapshot is exported again", error.what)
            self.close()
            return Planned(self._exported(start))

    def _exported(self, start: Any) -> Any:
        """The position of the exported snapshot; one that does not lie at `start` is replaced by a new one."""
        if self._export is None or self._export.position != start:
            self.close()
            with self._failures.translated("a snapshot cannot be exported"):
                # Once, as the stream waits meanwhile and the next planning tries again.
                self._export = self._server.open(self.config, "tailrace", once=True)
        return self._export.position
