"""The state of a first snapshot of several micro-batches."""

from __future__ import annotations

from tailrace.snapshot.reading import Place, Reading, Skip


def test_it_survives_json() -> None:
    place = Place(("s.a", "s.b"), ("1", "x"), 77, 4711)
    reading = Reading(place, Place(("s.a",), is_whole=True), (Skip("s.a", ("1", "x"), 9), Skip("s.b", None, 9)), 5, 8)
    assert Reading.from_json(reading.to_json()) == reading
    assert Reading.from_json(Reading(Place(())).to_json()) == Reading(Place(()))


def test_a_new_attempt_contains_what_is_left() -> None:
    reading = Reading(Place(("s.b",)), Place(("s.a", "s.b"), ("7",), 1, 2), splits=3)
    assert reading.undo is not None
    after = reading.resumed(reading.undo, 100)
    assert after == Reading(reading.undo, None, (Skip("s.a", ("7",), 100), Skip("s.b", None, 100)), 3)
    again = after.resumed(Place(("s.b",)), 200)
    assert again.skips == (*after.skips, Skip("s.b", None, 200))


def test_stretches_end_where_an_attempt_stood() -> None:
    reading = Reading(Place(()), None, (Skip("s.a", None, 100), Skip("s.b", None, 200)))
    assert [reading.next_cut(at) for at in (50, 99, 100, 199, 200)] == [100, 100, 200, 200, None]
    rest = reading.after(100)
    assert rest is not None
    assert rest.skips == (Skip("s.b", None, 200),)
    assert reading.after(200) is None
