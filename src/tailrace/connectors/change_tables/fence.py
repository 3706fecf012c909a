"""Tells which changes of the log a chunk was read without."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.snapshots import Fence, Flags
from tailrace.model.arrow import flags
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.override import override


@dataclass(frozen=True, slots=True)
class CapturedUntil(Fence):
    """Implements Fence: what was captured before a chunk was read was committed before, so the chunk's rows have it."""

    position: LsnPosition

    @staticmethod
    def parse(text: str) -> CapturedUntil:
        """From its text."""
        return CapturedUntil(LsnPosition.from_text(text))

    @override
    def supersedes(self, batch: ChangeBatch) -> Flags:
        until = self.position.lsn(batch.table.id.database)
        return flags(pc.greater(batch.rows.column(COMMIT), until))
