"""Counts of events by micro-batch: the sum is right, the memory bounded."""

from __future__ import annotations

from tailrace.sinks.counts import Counts


def test_a_batch_that_is_counted_again_replaces_its_count() -> None:
    counts = Counts()
    counts[3] = 0
    counts[3] = 5
    counts[4] = 2
    counts[3] = 5
    assert (counts.total, counts[3], counts[4], counts[5]) == (7, 5, 2, 0)


def test_a_pipeline_may_run_for_long() -> None:
    counts = Counts()
    for batch in range(10_000):
        counts[batch] = 1
        counts[max(batch - 50, 0)] = 1
    assert counts.total == 10_000
    assert len(counts) <= 1000
    counts[0] = 7
    assert counts.total == 10_000
