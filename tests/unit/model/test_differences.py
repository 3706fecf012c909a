"""What a later description of a table tells about rows that the log did not bring."""

from __future__ import annotations

from dataclasses import replace

from tailrace.model.differences import differences
from tailrace.model.structure import ColumnType, Member, Stored, Structure

PLAIN = Structure("1", {"id": "1"}, types={"1": ColumnType("numeric(10,2)", "numeric")}, storage=("a",), made=1)
WIDER = Structure(
    "1",
    {"id": "1", "new": "2"},
    types={"1": ColumnType("numeric(10,1)", "numeric"), "2": ColumnType("uuid", "uuid")},
    storage=("b",),
    made=2,
)


def emptied() -> Stored:
    found = Stored.of(PLAIN)
    found.emptied()
    return found


def test_rows_that_came_after_all_were_removed_may_have_been_rewritten() -> None:
    added, retyped = differences(emptied(), WIDER).values
    assert "new was added and the table rewritten" in added
    assert "the type of the column id was changed" in retyped


def test_what_is_known_of_a_new_column_needs_no_rewriting() -> None:
    (retyped,) = differences(emptied(), WIDER, filled=("new",)).values
    assert "the type of the column id" in retyped


def test_removing_all_rows_alone_tells_nothing() -> None:
    now = Structure("1", {"id": "1"}, types=PLAIN.types, storage=("b",), made=1, is_untold=True)
    found = differences(emptied(), now)
    assert (found.values, found.why) == ((), ())


def test_a_column_that_is_dropped_is_not_the_one_that_gets_its_name() -> None:
    stored = emptied()
    stored.begun = {"id": "int", "new": "uuid", "old": "text"}
    stored.altered({"old": "renamed"}, ["new"])
    assert stored.begun == {"id": "int", "renamed": "text"}


def test_a_rewrite_while_columns_are_altered_may_have_changed_values() -> None:
    before = replace(PLAIN, version="1")
    found = [differences(Stored.of(before), replace(PLAIN, version=version, storage=("b",))) for version in "12"]
    assert found[0].why == ()
    (why,) = found[1].why
    assert "its rows were rewritten while its columns were altered" in why
    assert differences(Stored.of(before), replace(PLAIN, version="2")).why == ()


def test_a_part_that_left_and_came_again_may_have_changed_in_between() -> None:
    part = Member("public.p", "a", had_rows=True, arrival="7")
    before, now = (replace(PLAIN, members={"9": each}) for each in (part, replace(part, arrival="8")))
    (why,) = differences(Stored.of(before), now).why
    assert "public.p was detached for a while" in why
    assert differences(Stored.of(before), before).why == ()
    assert (
        differences(Stored.of(before), replace(PLAIN, members={"9": replace(part, arrival="8", had_rows=False)})).why
        == ()
    )
    older = Stored.of(before)
    older.members = {"9": ["public.p", "a"]}  # as an earlier release has stored it
    assert differences(older, now).why == ()
