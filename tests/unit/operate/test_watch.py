"""The figures of a run: what they add up, and which condition a run has from its start to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from tailrace.errors import TailraceError
from tailrace.operate import source_watch
from tailrace.operate import watch as module
from tailrace.operate.condition import Condition
from tailrace.operate.source_watch import SourceAnswer, SourceWatch
from tailrace.operate.status import SILENT_SECONDS, SourceLook
from tailrace.operate.watch import RunWatch
from tailrace.pipeline.batches import Batches, BatchTotals
from tailrace.pipeline.checkpoint import CheckpointBatch, CheckpointState
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.progress import RunProgress
from tailrace.snapshot.report import Report
from tests.unit.operate.made import CONFIGS

OFFSET = {"phase": "stream", "position": "0/180"}


class Here:
    """In place of the thread that asks checkpoint and server."""

    def __init__(self, *_: object) -> None:
        batch = CheckpointBatch(3, OFFSET)
        self.answer = SourceAnswer(SourceLook(CheckpointState(batch, batch), None, None, None, None, ()), 1.0)

    def close(self) -> None:
        pass


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> RunWatch:
    monkeypatch.setattr(module, "SourceWatch", Here)
    config = {**CONFIGS["postgres"], "topic.prefix": "t"}
    content = {"name": "p", "source": {"config": config}, "sink": {"null": {}}, "checkpoint": "state"}
    return RunWatch(from_content(content, base=Path("/nowhere"), where="test"))


def progress(events: int = 0, batch: int | None = 3, **more: object) -> RunProgress:
    return RunProgress(batch, events, 0.0, OFFSET, batches=Batches(events, {"addBatch": 1.0}), **more)  # type: ignore[arg-type]


def condition(watch: RunWatch) -> Condition:
    return watch.figures().status.condition


def test_the_conditions_of_a_run(watch: RunWatch) -> None:
    assert condition(watch) is Condition.NEVER_STARTED
    watch.starting()
    assert condition(watch) is Condition.STARTING
    watch.said(progress(batch=None))
    assert condition(watch) is Condition.STARTING
    watch.said(progress(1))
    assert condition(watch) is Condition.STREAMING
    watch.said(progress(1, activity="restarts", error="no registry at h:1"))
    assert condition(watch) is Condition.RESTARTING
    watch.said(
        progress(1, sink_problem="it is full; the pipeline waits for it, and goes on by itself; remedy: free some")
    )
    assert condition(watch) is Condition.SINK_AWAY
    watch.ended(is_paused=True)
    assert condition(watch) is Condition.PAUSED
    watch.starting()
    watch.ended()
    assert condition(watch) is Condition.STOPPED


def test_what_fails_again_and_again_stays_failed(watch: RunWatch) -> None:
    watch.starting()
    watch.ended(TailraceError("no space", remedy="free some"))
    watch.starting()
    watch.said(progress(batch=None))
    assert condition(watch) is Condition.FAILED
    watch.said(progress(batch=None, activity="writes"))
    assert condition(watch) is Condition.STREAMING


def test_a_run_that_says_nothing_any_more_is_silent(watch: RunWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    # Of this module alone: threads of other tests have their own waits.
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    watch.starting()
    now[0] += SILENT_SECONDS + 1
    assert condition(watch) is Condition.STARTING
    now[0] += module.START_SECONDS
    assert condition(watch) is Condition.SILENT
    watch.said(progress(1))
    assert condition(watch) is Condition.STREAMING
    now[0] += SILENT_SECONDS + 1
    assert condition(watch) is Condition.SILENT


def test_sums_go_on_over_the_starts_of_a_pipeline(watch: RunWatch) -> None:
    for events in (3, 4):
        watch.starting()
        watch.said(progress(1))
        watch.said(progress(events, restarts=1, rows={"t": events}))
        watch.ended()
    found = watch.figures()
    assert (found.totals.events, found.totals.batches, found.totals.restarts, found.starts) == (7, 7, 2, 2)
    assert found.totals.rows == {"t": 7}
    assert found.totals.seconds == {"addBatch": 2.0}


def test_rows_that_snapshots_have_read_are_kept_when_the_log_is_read(watch: RunWatch) -> None:
    def said(batch: int | None, phase: str, rows: dict[str, int], report: Report | None = None) -> Mapping[str, int]:
        watch.said(RunProgress(batch, 0, 0.0, {"phase": phase}, rows=rows, snapshot=report))
        return watch.figures().scanned

    watch.starting()
    first = Report("initial", "2 tables", 0, None)
    assert said(None, "", {"t": 5}, first) == {"t": 5}, "while it is read"
    assert said(0, "snapshot", {"t": 9, "u": 1}) == {"t": 9, "u": 1}
    assert said(0, "snapshot", {"t": 12, "u": 1}) == {"t": 9, "u": 1}, "the log's rows are not counted"
    assert said(1, "stream", {"t": 12, "u": 1}) == {"t": 9, "u": 1}
    assert said(2, "stream", {"t": 12, "u": 1}, Report("incremental", "u", 3, None)) == {"t": 9, "u": 3}
    assert said(3, "stream", {"t": 12, "u": 4}) == {"t": 9, "u": 3}


def test_batches_are_counted_once_and_reports_of_waiting_are_none() -> None:
    totals = BatchTotals()
    first = {"timestamp": "2026-11-27T10:00:00.000Z", "batchId": 0, "durationMs": {"addBatch": 200, "walCommit": 50}}
    second = {**first, "timestamp": "2026-11-27T10:00:01.000Z", "batchId": 1}
    idle = {"timestamp": "2026-11-27T10:00:11.000Z", "batchId": 2, "durationMs": {"latestOffset": 3}}
    for _ in range(2):
        totals.see([first, second, idle])
    assert totals.so_far == Batches(2, {"addBatch": 0.4, "walCommit": 0.1}, {"addBatch": 0.2, "walCommit": 0.05})


def test_a_defect_of_a_look_is_told_and_the_next_look_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [True]

    def look(*_: object, **__: object) -> SourceLook:
        if fails[0]:
            raise ValueError("a defect")
        return SourceLook(CheckpointState(None, None), None, None, None, None, ())

    monkeypatch.setattr(source_watch, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(source_watch, "source_look", look)
    config = {**CONFIGS["postgres"], "topic.prefix": "t"}
    content = {"name": "p", "source": {"config": config}, "sink": {"null": {}}, "checkpoint": "state"}
    asks = SourceWatch(from_content(content, base=tmp_path, where="test"), lambda: None)
    try:
        eventually(lambda: asks.answer.source.problems)
        assert "cannot be asked: ValueError" in asks.answer.source.problems[0].what
        fails[0] = False
        eventually(lambda: not asks.answer.source.problems)
    finally:
        asks.close()


def eventually(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
