"""The fence of a chunk on PostgreSQL: which transactions of the log the chunk already reflects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tailrace.connectors.snapshots import Fence, Flags
from tailrace.model.change import ChangeBatch
from tailrace.override import override


@dataclass(frozen=True, slots=True)
class Visibility(Fence):
    """A pg_snapshot: transactions below `xmin`, and those below `xmax` that did not run then, are contained."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @staticmethod
    def parse(text: str) -> Visibility:
        """From `xmin:xmax:xip,xip`."""
        xmin, xmax, running = text.split(":")
        return Visibility(int(xmin), int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))

    def contains(self, xids: npt.NDArray[np.int64]) -> Flags:
        """For each transaction, by the 32 bits that the log tells of its number, whether it is contained."""
        distance = (xids - self.xmax) & 0xFFFFFFFF
        whole = self.xmax + np.where(distance >= 1 << 31, distance - (1 << 32), distance)
        contained: Flags = (whole < self.xmin) | ((whole < self.xmax) & ~np.isin(whole, list(self.running)))
        return contained

    @override
    def supersedes(self, batch: ChangeBatch) -> Flags:
        source = batch.rows.column("source")
        xids = source.field(source.type.get_field_index("txId")).fill_null(0).to_numpy(zero_copy_only=False)
        later: Flags = ~self.contains(xids)
        return later
