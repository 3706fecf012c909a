"""Counts the events of each micro-batch and of the run, in bounded memory."""

from __future__ import annotations

# More than the micro-batches whose progress Spark keeps, by default 100.
_KEPT = 1000


class Counts:
    """Counts by micro-batch. The newest are known one by one, and may be set again; of the others the sum is known."""

    def __init__(self) -> None:
        self.total = 0
        self._newest: dict[int, int] = {}
        self._forgotten = -1

    def __setitem__(self, batch: int, count: int) -> None:
        if batch <= self._forgotten:
            return
        self.total += count - self._newest.get(batch, 0)
        self._newest[batch] = count
        if len(self._newest) > _KEPT:
            self._forgotten = min(self._newest)
            del self._newest[self._forgotten]

    def __getitem__(self, batch: int) -> int:
        return self._newest.get(batch, 0)

    def __len__(self) -> int:
        return len(self._newest)
