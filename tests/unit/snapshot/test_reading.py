"""The state of a first snapshot of several micro-batches."""

from __future__ import annotations

from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.snapshot.reading import Reading


def test_it_survives_json() -> None:
    place = SnapshotPlace(("s.a", "s.b"), ("1", "x"), "77", 4711)
    reading = Reading(place, SnapshotPlace(("s.a",), is_whole=True), ("s.a",), 5, 8)
    assert Reading.from_json(reading.to_json()) == reading
    assert Reading.from_json(Reading(SnapshotPlace(())).to_json()) == Reading(SnapshotPlace(()))


def test_tables_are_untouched_until_rows_of_them_may_have_been_read() -> None:
    reading = Reading(SnapshotPlace(("s.b", "s.c", "s.d")), touched=("s.a", "s.b", "s.c"))
    assert reading.untouched == ("s.d",)
