"""Measures how far a running pipeline is, from Spark's reports of its newest batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from tailrace.pipeline.activity import WAITS, Activity
from tailrace.pipeline.batches import Batches
from tailrace.pipeline.restarts import Restarted
from tailrace.snapshot.report import Report


@dataclass(frozen=True)
class RunProgress:
    """How far a running pipeline is. `events` counts since the start of this run; `offset` is the source's newest.

    `position` is that offset's position in the log as text, None before the log is read. `snapshot` is the one that
    runs, None when there is none. `latest` is what the source said of the log's end, see `Capture.latest`. `activity`
    is what the query does, for so many seconds (in how many it restarts); `error` is why it is started again, without
    secrets, and `remedy` what helps if that does not. `set_aside` says which tables of a replica
    are set aside, and why; `incomplete` which may differ from the source, and what they take; `sink_problem` why the
    sink cannot be reached now, `catalog` what keeps tables from being registered. `batches` sums up the micro-batches
    of this run, `restarts` counts how often its query was started again, `restarted` is the newest time, `rows` the
    rows that it put and deleted in each table of a replica, `topics` those that it has written to. `caught_up`
    is when the log last ended where a micro-batch ends, in seconds since 1970.
    """

    batch: int | None
    events: int
    batch_seconds: float
    offset: dict[str, Any]
    _: KW_ONLY
    snapshot: Report | None = None
    position: str | None = None
    latest: dict[str, Any] = field(default_factory=dict)
    activity: Activity = WAITS
    activity_seconds: float = 0.0
    error: str | None = None
    remedy: str | None = None
    set_aside: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    sink_problem: str | None = None
    catalog: tuple[str, ...] = ()
    batches: Batches = field(default_factory=Batches)
    restarts: int = 0
    restarted: Restarted | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    caught_up: float | None = None


def offset_of(progress: dict[str, Any], name: str) -> dict[str, Any]:
    """An offset of a batch's source; Spark gives a Python source's as JSON, as text or already read."""
    sources = progress.get("sources") or [{}]
    offset = sources[0].get(name) or {}
    return json.loads(offset) if isinstance(offset, str) else offset
