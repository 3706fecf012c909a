"""Sums up what Spark reports of a run's micro-batches: how many, and how long each of their stages took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.spark.observed import NAME, NEWEST

# Spark's name of a micro-batch's writing: a report without it is one of a query that waits.
_WRITES = "addBatch"
WHOLE = "triggerExecution"
# So many changes are kept for who looks. Guessed.
_KEPT = 20


@dataclass(frozen=True)
class Batches:
    """The micro-batches of a run so far, the seconds of their stages by Spark's names, and those of the newest one.

    `counts` are the changes by operation and the transactions, by the names of observed.py; empty where they are not
    counted. `newest` are some of the newest changes in their order, without values, see newest.py.
    """

    count: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    newest: tuple[Mapping[str, Any], ...] = ()


class BatchTotals:
    """Adds up the reports of a run's queries; each may be shown again."""

    def __init__(self) -> None:
        self._seen: tuple[str, int] = "", -1
        self.so_far = Batches()

    def see(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Add what is new in the newest reports, which are in order; `timestamp` is ISO 8601 in UTC."""
        for report in reports:
            stages = report.get("durationMs", {})
            seen = report["timestamp"], report["batchId"]
            if _WRITES not in stages or seen <= self._seen:
                continue
            self._seen = seen
            last = {name: milliseconds / 1000 for name, milliseconds in stages.items()}
            sums = {name: self.so_far.seconds.get(name, 0.0) + seconds for name, seconds in last.items()}
            observed = {**((report.get("observedMetrics") or {}).get(NAME) or {})}
            newest = [*self.so_far.newest, *json.loads(observed.pop(NEWEST, None) or "[]")]
            counts = {**self.so_far.counts}
            for name, number in observed.items():
                counts[name] = counts.get(name, 0) + number
            count, seconds = self.so_far.count + 1, {**self.so_far.seconds, **sums}
            self.so_far = Batches(count, seconds, last, counts, tuple(newest[-_KEPT:]))
