"""What the parts of a micro-batch did to a table counts in their order."""

from __future__ import annotations

from tailrace.sinks.replica.reports import TableReport, summed

ROWS = TableReport("a", 1, version=1, is_there=True)
REPEATED = TableReport("a", is_there=True)
GONE = TableReport("a", is_gone=True)
LACKING = TableReport("a", lacking="replaced")


def moved(old: str, new: str) -> list[TableReport]:
    return [TableReport(new, renamed_from=old), TableReport(old, is_gone=True)]


def test_a_table_is_gone_if_that_is_what_happened_last() -> None:
    assert summed([ROWS, GONE])["a"].is_gone
    assert not summed([GONE, ROWS])["a"].is_gone
    assert not summed([GONE, REPEATED])["a"].is_gone
    assert not summed([GONE, LACKING])["a"].is_gone
    assert summed([GONE, ROWS, GONE])["a"].is_gone
    assert not summed([ROWS, GONE])["a"].is_there


def test_what_was_lacking_before_a_drop_does_not_matter() -> None:
    assert summed([LACKING, GONE, ROWS])["a"].lacking is None
    assert summed([GONE, LACKING, ROWS])["a"].lacking == "replaced"
    assert summed([LACKING, TableReport("a", lacking="read in part")])["a"].lacking == "replaced; read in part"


def test_rows_under_another_name_lack_what_they_lacked() -> None:
    found = summed([LACKING, TableReport("b", lacking="of no row that is left"), *moved("a", "b"), ROWS])
    assert (found["b"].renamed_from, found["b"].lacking) == ("a", "replaced")
    assert (found["a"].is_gone, found["a"].lacking, found["a"].is_there) == (False, None, True)


def test_a_chain_of_renames_begins_at_the_first_name() -> None:
    found = summed([LACKING, *moved("a", "b"), *moved("b", "c")])
    assert (found["c"].renamed_from, found["c"].lacking) == ("a", "replaced")
    assert found["b"].is_gone
    assert found["b"].renamed_from is None
