"""The state of signals: what an offset keeps of it, and what a restart takes back."""

from __future__ import annotations

import json

from tailrace.model.table import TableId
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.signals import KEYS_AT_ONCE, Request, Signal

A, B = (Request("s", "incremental", f"public.{name}", "x > 1", "k") for name in "ab")
FULL = Progress(
    handled=("s",),
    queue=(A, B),
    last=("1", None),
    maximum=("9", "y"),
    rows=4,
    paused=True,
    undo=((A, B), None, ("9", None), 0, "id integer,k text"),
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


def test_an_offset_of_the_first_release_is_understood() -> None:
    node = {"handled": ["s"], "queue": [], "last": None, "maximum": None, "rows": 0, "paused": False, "undo": None}
    assert Progress.from_json(node) == Progress(("s",))


def test_a_restart_goes_back_by_one_chunk_and_its_estimate_stays() -> None:
    begun = Progress(queue=(A, B), total=17, since_ms=1)
    read = begun.after_chunk(("3",), ("9",), 3)
    again = read.undone()
    assert (again.last, again.rows, again.total) == (None, 0, 17)
    over = read.without_present()
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


def test_keys_are_asked_for_in_parts_and_kept_in_the_offset() -> None:
    keys = [[str(n), "x"] for n in range(KEYS_AT_ONCE + 1)]
    signal = Signal("s", "execute-snapshot", json.dumps({"data-collections": ["public.a"], "keys": keys}))
    state = Progress().asked(signal, [TableId("d", "public", "a")])
    assert [len(request.keys or ()) for request in state.queue] == [KEYS_AT_ONCE, 1]
    assert Progress.from_json(json.loads(json.dumps(state.without_present().to_json()))) == state.without_present()
    assert state.without_present().undone() == state


def test_a_table_is_read_anew_when_its_key_becomes_another() -> None:
    read = Progress(queue=(A, B), key="id integer").after_chunk(("3",), ("9",), 3)
    assert read.by("id integer") == read
    assert (read.by("id text").last, read.by("id text").rows) == (None, 0)
    assert Progress(queue=(A,)).by("id integer") == Progress(queue=(A,)), "nothing is read yet"
