"""Changes that come late, from before something happened outside the log, make a table incomplete once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.model.structure import Fact, Structure
from tailrace.sinks.replica.modes import CHANGES, HISTORY, LATEST, Kind
from tailrace.sinks.replica.reports import summed
from tailrace.snapshot.table_note import TableNote
from tests.unit.sinks.lines import NAME, NOTES, Change, Line, Transaction, note


def described(state: str, read_us: int = 0) -> TableNote:
    fact = Fact(state, "its part was switched")
    return TableNote(NOTES.id, structure=Structure("1", facts={"part": fact}, read_us=read_us), schema=NOTES)


def lacking(line: Line, transaction: Transaction) -> str | None:
    return summed(line.commit([transaction]))[NAME].lacking


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
@pytest.mark.parametrize("mode", [LATEST, HISTORY, CHANGES])
def test_a_change_of_before_makes_the_table_incomplete(tmp_path: Path, lake: str, mode: Kind) -> None:
    line = Line(tmp_path, lake, mode)
    line.commit([Transaction(100, 1_000, [Change("c", None, note(1)), Change("c", None, note(2))])])
    line.write(described("a").batch("r"))
    assert lacking(line, Transaction(110, 1_100, [Change("u", None, note(1))])) is None
    found = line.write(described("b", read_us=2_000).batch("r"))
    assert summed(found)[NAME].lacking == "its part was switched"
    late = Transaction(120, 1_999, [Change("u", None, note(1))])
    assert "older than what had happened" in (lacking(line, late) or "")
    line.write(described("b", read_us=9_000).batch("r"))
    assert lacking(line, Transaction(130, 2_001, [Change("u", None, note(1))])) is None


def test_a_change_that_was_written_and_not_reported_is_told_when_it_is_repeated(tmp_path: Path) -> None:
    line = Line(tmp_path, "delta", LATEST)
    line.commit([Transaction(100, 1_000, [Change("c", None, note(1))])])
    line.write(described("a").batch("r"))
    line.write(described("b", read_us=2_000).batch("r"))
    late = Transaction(120, 1_999, [Change("u", None, note(1))])
    assert lacking(line, late) is not None
    line.number -= 1
    assert lacking(line, late) is not None
