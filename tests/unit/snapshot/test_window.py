"""Which rows of a chunk the log leaves standing, and what becomes of large values that it does not repeat."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.postgres.snapshot.fence import Visibility
from tailrace.model.change import ChangeBatch
from tailrace.snapshot.window import Window
from tests.unit.events.changes import changes, table

# `changes` are of transaction 7: not contained in this snapshot, contained in the other.
BEFORE, AFTER = Visibility(7, 7, frozenset()), Visibility(9, 9, frozenset())


def image(id_: int, code: str, note: str | None) -> dict[str, Any]:
    return {"id": id_, "code": code, "note": note}


def chunk(*images: dict[str, Any]) -> ChangeBatch:
    """Rows read."""
    return changes(table(), *({"op": "r", "after": one, "order": (1 << 62) + at} for at, one in enumerate(images)))


def unrepeated(*flags: bool) -> dict[str, pa.Array]:
    """The column `unchanged` for notes."""
    return {"unchanged": pa.StructArray.from_arrays([pa.array(flags)], names=["note"])}


def left(visibility: Visibility, *batches: ChangeBatch) -> list[dict[str, Any]]:
    """Images of three rows that stand in the end."""
    window = Window(chunk(image(1, "a", "long"), image(2, "b", "large"), image(3, "c", "big")), visibility, ("id",))
    window.observe(*batches)
    found = window.survivors().rows
    assert len(set(found.column("order").to_pylist())) == len(found)
    return sorted(found.column("after").to_pylist(), key=lambda row: row["id"])


ALL = [image(1, "a", "long"), image(2, "b", "large"), image(3, "c", "big")]


def test_rows_that_the_log_changes_later_are_dropped() -> None:
    update = changes(table(), {"op": "u", "after": image(2, "x", "y")})
    delete = changes(table(), {"op": "d", "before": image(3, "", None)})
    assert left(BEFORE, update, delete) == ALL[:1]
    assert left(AFTER, update, delete) == ALL
    assert left(BEFORE, changes(table("others"), {"op": "u", "after": image(2, "x", "y")})) == ALL
    assert left(BEFORE, changes(table(), {"op": "t"})) == []


def test_large_values_that_the_log_did_not_repeat_are_sent_with_the_newest_row() -> None:
    update = changes(table(), {"op": "u", "after": image(2, "x", None)}, **unrepeated(True))
    assert left(BEFORE, update) == [ALL[0], image(2, "x", "large"), ALL[2]]
    assert left(AFTER, update) == ALL
    again = changes(table(), {"op": "u", "after": image(2, "z", None), "order": 9}, **unrepeated(True))
    assert left(BEFORE, again, update) == [ALL[0], image(2, "z", "large"), ALL[2]], "by order, however they come"


def test_a_large_value_in_an_earlier_change_of_the_range_needs_no_row() -> None:
    told = changes(table(), {"op": "u", "after": image(2, "x", "new"), "order": 1})
    after = changes(table(), {"op": "u", "after": image(2, "y", None), "order": 2}, **unrepeated(True))
    assert left(BEFORE, told, after) == [ALL[0], ALL[2]]
    gone = changes(table(), {"op": "d", "before": image(2, "", None), "order": 3})
    assert left(BEFORE, after, gone) == [ALL[0], ALL[2]]


def test_a_row_is_followed_when_its_key_changes() -> None:
    moved = changes(
        table(), {"op": "u", "before": image(2, "", None), "after": image(7, "x", None), "order": 1}, **unrepeated(True)
    )
    again = changes(table(), {"op": "u", "after": image(7, "y", None), "order": 2}, **unrepeated(True))
    assert left(BEFORE, again, moved) == [ALL[0], ALL[2], image(7, "y", "large")]
    gone = changes(table(), {"op": "d", "before": image(7, "", None), "order": 3})
    assert left(BEFORE, moved, gone) == [ALL[0], ALL[2]]


@pytest.mark.parametrize(("visibility", "expected"), [(BEFORE, [5]), (AFTER, [4, 5])])
def test_keys_without_a_row_are_deletes_unless_the_log_has_a_row(visibility: Visibility, expected: list[int]) -> None:
    gone = ({"op": "d", "before": image(n, "", None), "order": (1 << 62) + n} for n in (4, 5))
    window = Window(changes(table(), *gone), visibility, ("id",))
    window.observe(changes(table(), {"op": "c", "after": image(4, "a", "b")}))
    assert [row["id"] for row in window.survivors().rows.column("before").to_pylist()] == expected


def test_rows_are_identified_by_the_columns_of_old_images() -> None:
    """REPLICA IDENTITY USING INDEX on `code`: a deleted row has no key, and a changed key no old image."""
    rows = chunk(image(1, "a", None), image(2, "b", None), image(3, "c", None))
    window = Window(rows, BEFORE, ("code",))
    window.observe(
        changes(table(), {"op": "d", "before": {"id": None, "code": "b", "note": None}}),
        changes(table(), {"op": "u", "after": image(7, "c", None)}),
        changes(table(), {"op": "c", "after": image(3, "d", None)}),
    )
    assert [row["id"] for row in window.survivors().rows.column("after").to_pylist()] == [1]


@pytest.mark.parametrize("identity", [(), ("id", "code", "note")])
def test_new_rows_of_a_table_without_a_key_drop_none(identity: tuple[str, ...]) -> None:
    keyless = table(key=(), identity=identity)
    read = changes(keyless, *({"op": "r", "after": image(n, "a", None)} for n in (1, 2)))
    window = Window(read, BEFORE, identity)
    window.observe(changes(keyless, {"op": "c", "after": image(1, "a", None)}))
    assert len(window.survivors().rows) == 2


def test_a_deleted_row_of_a_table_without_a_key_is_dropped_by_its_old_image() -> None:
    keyless = table(key=(), identity=("id", "code", "note"))
    read = changes(keyless, *({"op": "r", "after": image(n, "a", None)} for n in (1, 2)))
    window = Window(read, BEFORE, keyless.identity)
    window.observe(changes(keyless, {"op": "d", "before": image(2, "a", None)}))
    assert [row["id"] for row in window.survivors().rows.column("after").to_pylist()] == [1]
