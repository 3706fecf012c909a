"""The state of signals: what an offset keeps of it, and what a restart takes back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tailrace.connectors.signal import Signal
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, TableId, TableNaming
from tailrace.snapshot.progress import Progress, Undo
from tailrace.snapshot.signals import BLOCKING, INCREMENTAL, KEYS_AT_ONCE, TableRequest, requests
from tests.unit.events.event_recordings import configured

A, B = (TableRequest("s", "incremental", f"public.{name}", "x > 1", surrogate="k") for name in "ab")
FULL = Progress(
    handled=(("s", "760"), ("old", None)),
    queue=(A, B),
    last=("1", None),
    maximum=("9", "y"),
    rows=4,
    paused=True,
    undo=Undo((A, B), None, ("9", None), 0, "id integer,k text"),
    total=17,
    since_ms=1_764_000_000_000,
    files=("1.json",),
    topic=5,
    tables=(("public.t", True), ("public.u", False)),
    wait=760,
    key="id integer,k text",
)


def test_an_offset_keeps_all_of_it() -> None:
    assert Progress.from_json(json.loads(json.dumps(FULL.to_json()))) == FULL


def test_a_restart_goes_back_by_one_chunk_and_its_estimate_stays() -> None:
    begun = Progress(queue=(A, B), total=17, since_ms=1)
    read = begun.after_chunk(("3",), ("9",), 3).undoing(begun)
    again = read.undone()
    assert (again.last, again.rows, again.total) == (None, 0, 17)
    over = read.without_present().undoing(read)
    assert (over.queue, over.rows, over.total) == ((B,), 0, None)
    assert over.undone().queue == (A, B)
    assert over.undone().total is None, "it was the next table's"


def test_a_table_that_is_removed_is_not_read_any_more() -> None:
    reading = Progress(queue=(A, B), last=("3",), maximum=("9",), rows=3, total=17)
    assert reading.without(["public.b"]) == Progress(queue=(A,), last=("3",), maximum=("9",), rows=3, total=17)
    assert reading.without(["public.a"]) == Progress(queue=(B,))


def test_stop_names_tables_or_all() -> None:
    tables = [TableId("shop", "public", name) for name in "ab"]
    for data, left in ((None, ()), ('{"data-collections": ["public.b"]}', (A,)), ('{"data-collections": [1]}', (A, B))):
        assert Progress(queue=(A, B)).asked(Signal("x", "stop-snapshot", data), tables).queue == left


def test_keys_are_requested_in_parts_and_stored_in_the_offset() -> None:
    keys = [[str(n), "x"] for n in range(KEYS_AT_ONCE + 1)]
    signal = Signal("s", "execute-snapshot", json.dumps({"data-collections": ["public.a"], "keys": keys}))
    state = Progress().asked(signal, [TableId("d", "public", "a")])
    assert [len(request.keys or ()) for request in state.queue] == [KEYS_AT_ONCE, 1]
    read = state.without_present().undoing(state)
    assert Progress.from_json(json.loads(json.dumps(read.to_json()))) == read
    assert read.undone() == state


def test_a_table_is_read_again_when_its_key_changes() -> None:
    read = Progress(queue=(A, B), key="id integer").after_chunk(("3",), ("9",), 3)
    assert read.by("id integer") == read
    assert (read.by("id text").last, read.by("id text").rows) == (None, 0)
    assert Progress(queue=(A,)).by("id integer") == Progress(queue=(A,)), "nothing is read yet"


def request(signal: str, kind: str, table: str, condition: str | None = None) -> TableRequest:
    return TableRequest(signal, kind, f"public.{table}", condition)


def test_a_blocking_snapshot_reads_the_next_tables_of_one_signal_once_each() -> None:
    first, second, third = (
        request("s", BLOCKING, "a"),
        request("s", BLOCKING, "b"),
        request("s", BLOCKING, "a", "SELECT"),
    )
    later = request("s", INCREMENTAL, "c")
    left, requests = Progress(queue=(first, second, third, later)).without_blocking()
    assert requests == (first, second)
    left, requests = left.without_blocking()
    assert requests == (third,)
    assert left.queue == (later,)
    assert not left.is_next(BLOCKING)
    assert left.is_next(INCREMENTAL)


def test_a_pause_holds_up_no_blocking_snapshot() -> None:
    paused = Progress(queue=(A,), last=("3",), maximum=("9",), rows=3).asked(Signal("p", "pause-snapshot", None), [])
    waiting = replace(paused, queue=(A, B, request("x", BLOCKING, "c")))
    assert waiting.is_next(BLOCKING)
    left, requests = waiting.without_blocking()
    assert requests == (request("x", BLOCKING, "c"),)
    assert (left.queue, left.last, left.rows, left.paused) == ((A, B), ("3",), 3, True)
    assert left.undone() == replace(waiting, undo=None, queue=(A, B, request("x", BLOCKING, "c")))


def test_nothing_stays_paused_when_nothing_is_left_of_a_stopped_snapshot() -> None:
    paused = Progress(queue=(A, B)).asked(Signal("p", "pause-snapshot", None), [])
    assert paused.paused
    assert paused.without([A.table]).paused
    assert not paused.asked(Signal("x", "stop-snapshot", None), []).paused
    assert not Progress(queue=(request("x", BLOCKING, "c"),)).asked(Signal("p", "pause-snapshot", None), []).paused


def test_a_stop_of_a_table_that_is_not_being_read_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    tables = [TableId("d", "public", "a"), TableId("d", "public", "c")]
    assert Progress().asked(Signal("x", "stop-snapshot", None), tables) == Progress()
    assert "signal x is ignored: no snapshot is running" in caplog.text
    running = Progress(queue=(A, B))
    stop = Signal("y", "stop-snapshot", '{"data-collections": ["public.a", "public.c"]}')
    assert running.asked(stop, tables).queue == (B,)
    assert "signal y: public.c is not part of the snapshot" in caplog.text
    assert "public.a" not in caplog.text


@pytest.mark.parametrize("keys", [None, (("1", "x"),)])
def test_a_request_is_read_again(keys: tuple[tuple[str, ...], ...] | None) -> None:
    request = TableRequest("s", "incremental", "my.s.t", keys=keys, leading=("my.s",))
    assert request.id(configured({})) == TableId("d", "my.s", "t")
    assert TableRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


@pytest.mark.parametrize("parts", [("one", "dbo", "t"), ("my.db", "dbo", "t"), ("one", "my.schema", "my.t")])
def test_requests_of_tables_in_several_databases(parts: tuple[str, str, str]) -> None:
    config = replace(configured({}), naming=TableNaming(DATABASE_SCHEMA_TABLE))
    table, other = (TableId(*each, DATABASE_SCHEMA_TABLE) for each in (parts, ("other", *parts[1:])))
    signal = Signal("s", "execute-snapshot", json.dumps({"data-collections": [str(table)]}))
    (request,) = requests(signal, [table, other])
    assert TableRequest.from_json(json.loads(json.dumps(request.to_json()))) == request
    assert request.id(config) == table
