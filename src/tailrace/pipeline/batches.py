"""Sums up what Spark reports of a run's micro-batches: how many, and how long each of their stages took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.spark.observed import NAME

# Spark's name of a micro-batch's writing: a report without it is one of a query that waits.
_WRITES = "addBatch"
WHOLE = "triggerExecution"


@dataclass(frozen=True)
class Batches:
    """The micro-batches of a run so far, the seconds of their stages by Spark's names, and those of the newest one.

    `counts` are the changes by operation and the transactions, by the names of observed.py; empty where they are not
    counted.
    """

    count: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class BatchTotals:
    """Adds up the reports of a run's queries; each may be shown again."""

    def __init__(self) -> None:
        self._seen: tuple[str, int] = "", -1
        self.so_far = Batches()

    def see(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Add what is new in the newest reports, which are in order; `timestamp` is ISO 8601 in UTC."""
        for report in reports:
            stages = report.get("durationMs", {})
            known = report["timestamp"], report["batchId"]
            if _WRITES not in stages or known <= self._seen:
                continue
            self._seen = known
            last = {name: milliseconds / 1000 for name, milliseconds in stages.items()}
            sums = {name: self.so_far.seconds.get(name, 0.0) + seconds for name, seconds in last.items()}
            counts = {**self.so_far.counts}
            for name, number in ((report.get("observedMetrics") or {}).get(NAME) or {}).items():
                counts[name] = counts.get(name, 0) + number
            self.so_far = Batches(self.so_far.count + 1, {**self.so_far.seconds, **sums}, last, counts)
