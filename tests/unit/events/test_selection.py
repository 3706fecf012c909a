"""Skipped operations and updates without change."""

from dataclasses import replace

import pyarrow as pa

from tailrace.events.selection import select, without_hidden_changes, without_unchanged
from tests.unit.events.changes import batch, changes, table
from tests.unit.events.event_recordings import config

ONE = {"id": 1, "code": "a", "note": None}


def test_truncates_are_skipped_by_default_and_reads_never() -> None:
    given = batch("cudtr")
    assert select(given, config()).rows.column("op").to_pylist() == ["c", "u", "d", "r"]
    assert select(given, config(skipped_operations="none")) is given
    assert select(given, config(skipped_operations="c,u,d,t")).rows.column("op").to_pylist() == ["r"]


def test_updates_without_change() -> None:
    rows = (
        {"op": "u", "before": ONE, "after": ONE},
        {"op": "u", "before": ONE, "after": {**ONE, "note": "x"}},
        {"op": "u", "after": ONE},
        {"op": "c", "before": ONE, "after": ONE},
    )
    kept = without_unchanged(changes(table(), *rows), config(skip_messages_without_change="true"))
    assert kept.rows.column("order").to_pylist() == [2, 4, 6]
    assert len(without_unchanged(changes(table(), *rows), config())) == 4


def test_a_large_value_that_was_not_repeated_has_not_changed() -> None:
    marks = pa.array([{"note": True}], pa.struct([("note", pa.bool_())]))
    given = changes(table(), {"op": "u", "before": {**ONE, "note": "long"}, "after": ONE}, unchanged=marks)
    assert len(without_unchanged(given, config(skip_messages_without_change="true"))) == 0


def test_a_required_value_that_the_log_lacks_is_empty_for_the_reference() -> None:
    lacking, given = {"id": 1, "code": None, "note": "x"}, "skip_messages_without_change"
    rows = (
        {"op": "u", "before": lacking, "after": {"id": 1, "code": "", "note": "x"}},
        {"op": "u", "before": lacking, "after": {"id": 1, "code": "b", "note": "x"}},
        {"op": "u", "before": {**lacking, "note": None}, "after": {"id": 1, "code": "", "note": ""}},
    )
    for faults, kept in (("false", [0, 2, 4]), ("true", [2, 4])):
        found = without_unchanged(changes(table(), *rows), config(**{given: "true", "compat_faults": faults}))
        assert found.rows.column("order").to_pylist() == kept


def test_an_update_of_a_hidden_key_alone_is_left_out_as_the_reference_does() -> None:
    shown = table()
    hidden = replace(shown, columns=(replace(shown.columns[0], in_value=False), *shown.columns[1:]))
    rows = (
        {"op": "u", "before": ONE, "after": {**ONE, "id": 2}},
        {"op": "u", "before": ONE, "after": {**ONE, "id": 2, "code": "b"}},
    )
    given = config(skip_messages_without_change="true")
    kept = without_hidden_changes(changes(hidden, *rows), given)
    assert [row["code"] for row in kept.rows.column("after").to_pylist()] == ["b"]
    assert len(without_hidden_changes(changes(shown, *rows), given)) == 2
    assert len(without_hidden_changes(changes(hidden, *rows), config())) == 2
