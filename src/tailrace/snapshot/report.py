"""Reports a snapshot's progress: rows, chunks and the expected end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import ceil
from typing import Any

from tailrace.config import Config
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.offset import WITHOUT_ROWS
from tailrace.model.quantity import counted
from tailrace.override import override
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.reading import Reading

INITIAL = "initial"


@dataclass(frozen=True)
class Report:
    """A snapshot that runs. `table` is the present one (of the first snapshot: how many), and `waiting` come after it.

    `total` is an estimate, as are `chunks` and `seconds_left`; they are None before the first chunk is read, and
    `chunks` where their size follows the time that they take. The first snapshot has tasks for chunks (None: one
    micro-batch reads it), says how many of its `tables` are read, and whether it is `running`. `active` tasks read at
    this moment; None: unknown.
    """

    kind: str
    table: str
    rows: int
    total: int | None
    _: KW_ONLY
    chunk: int = 0
    chunks: int | None = None
    seconds_left: float | None = None
    waiting: tuple[str, ...] = ()
    paused: bool = False
    tables_read: int | None = None
    tables: int | None = None
    running: bool | None = None
    active: int | None = None

    @property
    def rows_a_second(self) -> float | None:
        """How fast it has read so far, by what is left; None where that is not known."""
        if not self.total or not self.seconds_left or self.total <= self.rows:
            return None
        return (self.total - self.rows) / self.seconds_left

    @override
    def __str__(self) -> str:
        parts = [f"{self.kind} snapshot of {self.table}"]
        if self.tables_read:
            parts.append(f"{self.tables_read} of them read")
        parts += filter(None, [self._amount()])
        if self.rows_a_second is not None and not self.paused:
            parts.append(f"{counted(round(self.rows_a_second), 'row')} a second")
        if self.seconds_left is not None and not self.paused:
            parts.append(f"about {self.seconds_left:,.0f} s left")
        if self.waiting:
            parts.append(f"then {', '.join(self.waiting)}")
        if self.running is False:
            parts.append("not running: the next start " + ("restarts it" if self.chunks is None else "resumes it"))
        return ", ".join([*parts, *(["paused"] if self.paused else [])])

    def _amount(self) -> str | None:
        """How much is read of how much. A server without statistics estimates no row."""
        if self.total is None:
            return None
        rows = f"about {counted(self.total, 'row')}" if self.total else None
        if self.active is not None and not self.chunk:
            does = f"{self.active} of {counted(self.chunks or 0, 'chunk')} being read" if self.active else NO_TASK
            return ", ".join(filter(None, (rows, does)))
        if self.chunks is None and self.kind == INITIAL:
            return None if rows is None else f"{rows} in one micro-batch"
        chunk = None if self.chunks is None else f"chunk {self.chunk} of about {self.chunks}"
        return ", ".join(filter(None, (None if rows is None else f"{self.rows:,} of {rows}", chunk)))


# On a cluster its executors start first, which may take minutes.
NO_TASK = "no task of Spark's has begun to read yet"


def report(offset: dict[str, Any], chunk_size: int | None, now: float) -> Report | None:
    """What an offset tells of the snapshot that runs, None when none does; `now` is in seconds since 1970.

    `chunk_size`: rows of each chunk, None where they differ.
    """
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
        chunk=0 if chunk_size is None else ceil(state.rows / chunk_size),
        chunks=None if total is None or chunk_size is None else max(1, ceil(total / chunk_size)),
        seconds_left=left,
        waiting=tuple(request.table for request in waiting),
        paused=state.paused,
    )


def first_report(
    planned: dict[str, Any] | None,
    committed: dict[str, Any] | None,
    estimate: Callable[[], tuple[int, int]],
    running: bool,
    now: float,
) -> Report | None:
    """What the newest offsets tell of a first snapshot that is not done, None when there is none.

    `estimate` gives the number of its tables and of their rows, `now` is in seconds since 1970.
    """
    if planned is None or planned.get("phase") != "snapshot":
        return None
    is_same = committed is not None and committed.get("phase") == "snapshot" and _began(committed) == _began(planned)
    if "reading" not in planned:
        if is_same:
            return None
        tables, total = estimate()
        return Report(INITIAL, named(tables), 0, total, tables_read=0, tables=tables, running=running)
    newest = Reading.from_json(planned["reading"])
    done = Reading.from_json(committed["reading"]) if is_same and committed is not None else Reading(newest.place)
    if is_same and not done.place.left:
        return None
    tables, splits = len({*newest.touched, *newest.place.left}), done.splits
    expected = estimate()[1] if newest.of else None
    left = None
    if running and newest.since_ms is not None and splits > newest.since_splits:
        left = max(0.0, now - newest.since_ms / 1000) * (newest.of - splits) / (splits - newest.since_splits)
    read = tables - len(done.place.left) if splits else 0
    rows = 0 if expected is None else expected * splits // newest.of
    chunks = newest.of or None
    return Report(
        INITIAL,
        named(tables),
        rows,
        expected,
        chunk=splits,
        chunks=chunks,
        seconds_left=left,
        tables_read=read,
        tables=tables,
        running=running,
    )


def reads_tables(config: Config, committed: dict[str, Any] | None, planned: dict[str, Any] | None) -> bool:
    """Whether the newest batch, where the log begins with it, reads tables before: with snapshot.mode=no_data none."""
    if planned is None or "reading" in planned:
        return True
    if committed is None:
        return SnapshotMode.of(config).at_first
    return WITHOUT_ROWS not in planned.get("log", {})


def named(tables: int) -> str:
    """A number of tables in words."""
    return counted(tables, "table")


def _began(offset: dict[str, Any]) -> Any:
    """What tells one snapshot from a later one, see Offset."""
    return offset.get("ts_us")
