"""What `status` makes of a checkpoint and a server."""

from __future__ import annotations

from tailrace.cli.status import assess
from tailrace.connectors.postgres.operations import ServerState, SlotState
from tailrace.model.quantity import size
from tailrace.pipeline.checkpoint import Batch, Position

SLOT = SlotState("s", "pgoutput", True, 7, "reserved", "0/100", "0/180")


def at(lsn: str | None, ts_us: int | None = 1_000_000) -> Position:
    batch = Batch(3, {"phase": "stream" if lsn else "snapshot", "lsn": lsn, "ts_us": ts_us})
    return Position(batch, batch)


def test_lag_in_bytes_and_seconds() -> None:
    status = assess("p", at("0/200"), ServerState("1/300", SLOT), now=3.5)
    assert (status.phase, status.batch, status.position) == ("stream", 3, "0/200")
    assert status.lag_bytes == (1 << 32) + 0x100
    assert status.lag_seconds == 2.5
    assert status.retained_bytes == (1 << 32) + 0x200


def test_nothing_to_read_is_no_lag_however_old_the_position() -> None:
    status = assess("p", at("0/300"), ServerState("0/300", SLOT), now=1e9)
    assert (status.lag_bytes, status.lag_seconds) == (0, 0.0)


def test_before_the_stream_there_is_no_lag_to_tell() -> None:
    status = assess("p", at(None), ServerState("0/300", None), now=2)
    assert (status.phase, status.lag_bytes, status.retained_bytes) == ("snapshot", None, None)


def test_before_the_first_commit() -> None:
    assert assess("p", Position(None, None), ServerState("0/1", None), now=2).phase == "not started"
    assert assess("p", Position(Batch(0, {}), None), ServerState("0/1", None), now=2).phase == "first batch"


def test_a_snapshot_with_rows_chunks_and_expected_end() -> None:
    queue = [["s1", "incremental", "public.a", None, None], ["s1", "incremental", "public.b", None, None]]
    state = {"handled": [], "queue": queue, "last": ["30"], "maximum": ["99"], "rows": 30, "paused": False}
    batch = Batch(3, {"phase": "stream", "lsn": "0/200", "ts_us": 1, "snapshots": {**state, "undo": None}})
    before = assess("p", Position(batch, batch), ServerState("0/300", SLOT), 12.0, 10).snapshot
    assert str(before) == "incremental snapshot of public.a, then public.b"
    batch.offset["snapshots"].update(total=95, since_ms=6000)
    snapshot = assess("p", Position(batch, batch), ServerState("0/300", SLOT), 12.0, 10).snapshot
    assert snapshot is not None
    assert (snapshot.rows, snapshot.total, snapshot.chunk, snapshot.chunks, snapshot.seconds_left) == (
        30,
        95,
        3,
        10,
        13,
    )
    assert str(snapshot) == (
        "incremental snapshot of public.a, 30 of about 95 rows, chunk 3 of about 10, about 13 s left, then public.b"
    )
    batch.offset["snapshots"].update(paused=True, rows=99)
    snapshot = assess("p", Position(batch, batch), ServerState("0/300", SLOT), 12.0, 10).snapshot
    assert "99 of about 99 rows, chunk 10 of about 10, then public.b, paused" in str(snapshot)


def test_sizes_for_reading() -> None:
    assert [size(n) for n in (0, 999, 1000, 1_230_000, 45 * 10**9, 7 * 10**12)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "45.0 GB",
        "7.0 TB",
    ]
