"""The state of a first snapshot of several micro-batches."""

from __future__ import annotations

from tailrace.connectors.snapshots import Place
from tailrace.snapshot.reading import Reading


def test_it_survives_json() -> None:
    place = Place(("s.a", "s.b"), ("1", "x"), "77", 4711)
    reading = Reading(place, Place(("s.a",), is_whole=True), ("s.a",), 5, 8)
    assert Reading.from_json(reading.to_json()) == reading
    assert Reading.from_json(Reading(Place(())).to_json()) == Reading(Place(()))


def test_tables_are_untouched_until_rows_of_them_may_have_been_read() -> None:
    reading = Reading(Place(("s.b", "s.c", "s.d")), touched=("s.a", "s.b", "s.c"))
    assert reading.untouched == ("s.d",)
