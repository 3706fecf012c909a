"""How far a snapshot is, for those who look: rows, chunks, and when it will be done."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from tailrace.snapshot.progress import Progress


@dataclass(frozen=True)
class Report:
    """A snapshot that runs. `table` is the present one (of the first snapshot: how many), and `waiting` come after it.

    `total` is an estimate, as are `chunks` and `seconds_left`; they are None before the first chunk is read.
    """

    kind: str
    table: str
    rows: int
    total: int | None
    chunk: int
    chunks: int | None
    seconds_left: float | None
    waiting: tuple[str, ...]
    paused: bool

    def __str__(self) -> str:
        parts = [f"{self.kind} snapshot of {self.table}"]
        if self.total is not None:
            parts.append(f"{self.rows:,} of about {self.total:,} rows, chunk {self.chunk} of about {self.chunks}")
        if self.seconds_left is not None and not self.paused:
            parts.append(f"about {self.seconds_left:,.0f} s left")
        if self.waiting:
            parts.append(f"then {', '.join(self.waiting)}")
        return ", ".join([*parts, *(["paused"] if self.paused else [])])


def report(offset: dict[str, Any], chunk_size: int, now: float) -> Report | None:
    """What an offset tells of the snapshot that runs, None when none does; `now` is in seconds since 1970."""
    state = Progress.from_json(offset.get("snapshots"))
    if not state.queue:
        return None
    present, *waiting = state.queue
    total = None if state.total is None else max(state.total, state.rows)
    left = None
    if total is not None and state.since_ms is not None and state.rows:
        left = max(0.0, now - state.since_ms / 1000) * (total - state.rows) / state.rows
    return Report(
        present.kind,
        present.table,
        state.rows,
        total,
        ceil(state.rows / chunk_size),
        None if total is None else max(1, ceil(total / chunk_size)),
        left,
        tuple(request.table for request in waiting),
        state.paused,
    )
