"""`tailrace status`: how checkpoint and server become the printed status."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tailrace.cli import status as module
from tailrace.cli.status import table
from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import SourceState
from tailrace.connectors.postgres.admin.operations import SlotState, position, state_of
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.errors import OffsetError, TailraceError
from tailrace.model.quantity import size
from tailrace.operate.status import ReplicaTable, Status, first
from tailrace.operate.status import assess as assess_at
from tailrace.pipeline.checkpoint import CheckpointBatch, CheckpointState
from tailrace.pipeline.lease import Owner
from tailrace.pipeline.run_state import Ended, RunState
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.reading import Reading
from tailrace.snapshot.report import Report, reads_tables
from tests.unit.events.event_recordings import configured

SLOT = SlotState("s", "pgoutput", True, 7, wal_status="reserved", restart="0/100", confirmed="0/180")


def at(lsn: str | None, ts_us: int | None = 1_000_000) -> CheckpointState:
    batch = CheckpointBatch(3, {"phase": "stream" if lsn else "snapshot", "position": lsn, "ts_us": ts_us})
    return CheckpointState(batch, batch)


def assess(name: str, found: CheckpointState, server: SourceState, now: float, chunk_size: int | None = None) -> Status:
    here = None if found.committed is None else position(found.committed.offset)
    return assess_at(name, found, server, here, now, chunk_size)


def test_lag_in_bytes_and_seconds() -> None:
    status = assess("p", at("0/200"), state_of("1/300", SLOT), now=3.5)
    assert (status.phase, status.batch, status.position) == ("stream", 3, "0/200")
    assert status.lag_bytes == (1 << 32) + 0x100
    assert status.lag_seconds == 2.5
    assert status.to_json()["retained_bytes"] == (1 << 32) + 0x200
    assert status.to_json()["slot"]["name"] == "s"


def test_the_lag_is_what_the_run_has_seen_of_the_log() -> None:
    """Of an idle pipeline the position is old; with a backlog it is younger than the changes behind it."""

    def lag(end: str, caught_up: float) -> float | None:
        here = position({"phase": "stream", "position": "0/200"})
        return assess_at("p", at("0/200"), state_of(end, SLOT), here, 3.5, None, caught_up).lag_seconds

    assert (lag("1/300", 3.0), lag("1/300", 0.5), lag("1/300", 4.0), lag("0/200", 0.5)) == (0.5, 3.0, 0.0, 0.0)


def test_nothing_to_read_is_no_lag_however_old_the_position() -> None:
    status = assess("p", at("0/300"), state_of("0/300", SLOT), now=1e9)
    assert (status.lag_bytes, status.lag_seconds) == (0, 0.0)


def test_before_the_stream_no_lag_is_shown() -> None:
    status = assess("p", at(None), state_of("0/300", None), now=2)
    assert (status.phase, status.lag_bytes, status.fields["retained_bytes"]) == ("snapshot", None, None)


def test_before_the_first_commit() -> None:
    assert assess("p", CheckpointState(None, None), state_of("0/1", None), now=2).phase == "not started"
    assert (
        assess("p", CheckpointState(CheckpointBatch(0, {}), None), state_of("0/1", None), now=2).phase == "first batch"
    )


def test_a_snapshot_with_rows_chunks_and_expected_end() -> None:
    queue = [{"signal": "s1", "kind": "incremental", "table": table} for table in ("public.a", "public.b")]
    state = {"handled": [], "queue": queue, "last": ["30"], "maximum": ["99"], "rows": 30, "paused": False}
    batch = CheckpointBatch(
        3, {"phase": "stream", "position": "0/200", "ts_us": 1, "snapshots": {**state, "undo": None}}
    )
    before = assess("p", CheckpointState(batch, batch), state_of("0/300", SLOT), 12.0, 10).snapshot
    assert str(before) == "incremental snapshot of public.a, then public.b"
    batch.offset["snapshots"].update(total=95, since_ms=6000)
    snapshot = assess("p", CheckpointState(batch, batch), state_of("0/300", SLOT), 12.0, 10).snapshot
    assert snapshot is not None
    assert (snapshot.rows, snapshot.total, snapshot.chunk, snapshot.chunks, snapshot.seconds_left) == (
        30,
        95,
        3,
        10,
        13,
    )
    assert str(snapshot) == (
        "incremental snapshot of public.a, 30 of about 95 rows, chunk 3 of about 10, 5 rows a second, "
        "about 13 s left, then public.b"
    )
    batch.offset["snapshots"].update(paused=True, rows=99)
    snapshot = assess("p", CheckpointState(batch, batch), state_of("0/300", SLOT), 12.0, 10).snapshot
    assert "99 of about 99 rows, chunk 10 of about 10, then public.b, paused" in str(snapshot)
    by_time = assess("p", CheckpointState(batch, batch), state_of("0/300", SLOT), 12.0, None).snapshot
    assert str(by_time) == "incremental snapshot of public.a, 99 of about 99 rows, then public.b, paused"


def test_a_first_snapshot_in_one_batch() -> None:
    batch = CheckpointBatch(0, {"phase": "snapshot", "pipeline": "p", "lsn": None, "ts_us": None})
    busy = state_of("0/300", SLOT, reads_snapshot=True)
    running = first(CheckpointState(batch, None), busy, lambda: (4, 1000), 2.0)
    assert str(running) == "initial snapshot of 4 tables, about 1,000 rows in one micro-batch"
    stopped = first(CheckpointState(batch, None), state_of("0/300", SLOT), lambda: (1, 1000), 2.0)
    assert str(stopped) == (
        "initial snapshot of 1 table, about 1,000 rows in one micro-batch, not running: the next start restarts it"
    )
    assert first(CheckpointState(batch, batch), busy, lambda: (4, 1000), 2.0) is None, "it is read"
    again = CheckpointBatch(7, {**batch.offset, "ts_us": 5})
    assert first(CheckpointState(again, batch), busy, lambda: (4, 1000), 2.0) is not None, "and read once more"


def test_a_start_without_rows_is_no_snapshot() -> None:
    """As where a pipeline continues from Debezium's position: it was reported as a snapshot of all tables."""

    def mode(name: str) -> Config:
        return configured({"snapshot.mode": name})

    begins, read = {"phase": "snapshot", "position": "0/100", "log": {}}, {"phase": "stream", "log": {}}
    assert reads_tables(mode("initial"), None, begins)
    assert not reads_tables(mode("no_data"), None, begins)
    later = mode("when_needed")
    assert reads_tables(later, read, begins)
    assert not reads_tables(later, read, {**begins, "log": {"without_rows": True}})


def test_a_first_snapshot_of_several_batches() -> None:
    busy = state_of("0/300", SLOT, reads_snapshot=True)

    def at(number: int, *left: str, splits: int, touched: tuple[str, ...] = ("a",)) -> CheckpointBatch:
        reading = Reading(SnapshotPlace(left), None, touched, splits, 12, 10_000, 2)
        return CheckpointBatch(
            number, {"phase": "snapshot", "pipeline": "p", "reading": reading.to_json(), "ts_us": None}
        )

    whole = CheckpointBatch(
        0, {"phase": "snapshot", "pipeline": "p", "reading": Reading(SnapshotPlace(("a", "b"))).to_json()}
    )
    assert str(first(CheckpointState(whole, None), busy, lambda: (2, 600), 0.0)) == "initial snapshot of 2 tables"
    found = first(CheckpointState(at(3, "b", "c", splits=8), at(2, "b", "c", splits=6)), busy, lambda: (3, 600), 18.0)
    assert found is not None
    assert (found.tables_read, found.tables, found.rows, found.seconds_left) == (1, 3, 300, 12.0)
    assert str(found) == (
        "initial snapshot of 3 tables, 1 of them read, 300 of about 600 rows, chunk 6 of about 12, "
        "25 rows a second, about 12 s left"
    )
    stopped = CheckpointState(at(2, "b", "c", splits=6), at(2, "b", "c", splits=6))
    text = str(first(stopped, state_of("0/300", SLOT), lambda: (3, 600), 18.0))
    assert text.endswith("chunk 6 of about 12, not running: the next start resumes it")
    end = at(9, splits=12, touched=("a", "b", "c"))
    assert first(CheckpointState(end, end), busy, lambda: (3, 600), 18.0) is None


def test_sizes_for_reading() -> None:
    assert [size(n) for n in (0, 999, 1000, 1_230_000, 45 * 10**9, 7 * 10**12)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "45.0 GB",
        "7.0 TB",
    ]


def test_incomplete_tables_and_problems_are_shown() -> None:
    offset = {
        "phase": "stream",
        "position": "0/300",
        "ts_us": 1,
        "snapshots": Progress().lacking("public.t", "no right").to_json(),
    }
    batch = CheckpointBatch(3, offset)
    status = assess("p", CheckpointState(batch, batch), state_of("0/300", SLOT), now=2)
    assert [(table.table, table.why) for table in status.incomplete] == [("public.t", "no right")]
    finding = Finding("publication", False, "p lacks public.u", "ALTER PUBLICATION p ADD TABLE public.u")
    console = Console(width=300, record=True)
    console.print(table(replace(status, problems=(finding,))))
    shown = console.export_text()
    assert "problem     p lacks public.u; remedy: ALTER PUBLICATION p ADD TABLE public.u" in shown
    assert "incomplete  public.t: rows were not read: no right; read them again by" in shown


def test_a_sink_that_is_away_is_a_problem_that_a_run_waits_for() -> None:
    away = Finding("sink", False, "Kafka at b:9092 does not answer", "start it")
    status = replace(assess("p", at("0/200"), state_of("0/300", SLOT), now=2), problems=(away,))
    assert status.is_lost
    running = replace(status, run=RunState("running"))
    assert not running.is_lost
    assert replace(running, problems=(away, Finding("publication", False, "p lacks t", "add it"))).is_lost
    console = Console(width=200, record=True, file=StringIO())
    console.print(table(replace(running, tables={"public.a": 1, "public.b": 2000})))
    said = console.export_text()
    assert "problem" in said
    assert "Kafka at b:9092 does not answer; remedy: start it" in said
    assert [line.split()[1:] for line in said.splitlines() if "public." in line] == [["1", "row"], ["2,000", "rows"]]


def test_a_first_snapshot_before_its_first_chunk() -> None:
    begun = Report(
        "initial", "2 tables", 0, 1000, chunk=0, chunks=3, seconds_left=None, waiting=(), paused=False, active=0
    )
    assert str(begun) == "initial snapshot of 2 tables, about 1,000 rows, no task of Spark's has begun to read yet"
    assert str(replace(begun, active=2)) == "initial snapshot of 2 tables, about 1,000 rows, 2 of 3 chunks being read"
    unknown = replace(begun, total=0, active=1)
    assert str(unknown) == "initial snapshot of 2 tables, 1 of 3 chunks being read", "a server without statistics"
    assert str(replace(unknown, chunk=1)) == "initial snapshot of 2 tables, chunk 1 of about 3"


def test_up_to_when_a_table_is_verified_and_what_of_it_is_not() -> None:
    plain = ReplicaTable("public.t", "complete", "noon", None, takes=None, is_lacking=False)
    begun = replace(plain, verified_percent=40, verified_why="the pipeline lags", not_compared={"p": "it has no type"})
    whole = replace(plain, table="public.u", verified_up_to="noon", verified_on="later", verified_percent=100)
    console = Console(width=300, record=True, file=StringIO())
    console.print(table(replace(assess("p", at("0/200"), state_of("0/300", SLOT), now=2), replica=(begun, whole))))
    assert [" ".join(line.split()) for line in console.export_text().splitlines() if "public." in line] == [
        "public.t not verified yet; the present pass is at 40 %; the pipeline lags; not compared: p: it has no type",
        "public.u verified up to noon, on later; the present pass is at 100 %",
    ]


def test_a_watched_status_is_shown_again_and_again_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = assess("p", at("0/200"), state_of("0/300", SLOT), now=3.5)
    says: list[Status | TailraceError] = [
        replace(found, run=RunState("running")),
        OffsetError("a file of the checkpoint is cut short", remedy="put it back"),
        replace(found, run=RunState("failed", None, Ended("noon", "the slot is gone", "drop the checkpoint"))),
    ]
    asked, pauses, output = list[object](), list[float](), StringIO()

    def look(definition: object, *, compares: bool) -> Status:
        asked.append((definition, compares))
        said = says[len(asked) - 1]
        if isinstance(said, TailraceError):
            raise said
        return said

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == len(says):
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "look", look)
    # Of this module alone: threads of other tests sleep, too.
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(module, "results", Console(file=output, force_terminal=True, width=100, color_system=None))
    definition: Any = object()
    with pytest.raises(KeyboardInterrupt):
        module.follow(definition)
    assert (asked, pauses) == ([(definition, False)] * 3, [2.0] * 3), "whether it could resume may read log"
    first, second, third = output.getvalue().split("Ctrl-C ends this")[1:4]
    assert "streaming" in first
    assert "a file of the checkpoint is cut short" in second
    assert "put it back" in second
    assert "the slot is gone" in third
    assert "drop the checkpoint" in third


def test_the_status_of_another_process_says_why_a_query_is_started_again() -> None:
    owner = replace(Owner.me(), error="no registry at h:1 (restart 3 of 10 in a row)", remedy="start the registry")
    found = replace(assess("p", at("0/200"), state_of("0/300", SLOT), now=3.5), run=RunState("running", owner))
    output = StringIO()
    Console(file=output, width=200).print(table(found))
    lines = {line.split("  ")[0]: line.partition("  ")[2].strip() for line in output.getvalue().splitlines()}
    assert lines["health"] == "restarting"
    assert lines["why"].endswith("an error that may pass: no registry at h:1 (restart 3 of 10 in a row)")
    assert lines["what to do"].endswith("If it stays: start the registry")
