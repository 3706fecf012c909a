"""The first rows that come after all were removed tell which columns the table had by then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.model.structure import Stored
from tailrace.model.table import Column
from tailrace.sinks.replica import descriptions
from tailrace.sinks.replica.modes import HISTORY, LATEST, Kind
from tailrace.sinks.replica.table import Table
from tailrace.sinks.replica.writing import repeated
from tests.unit.sinks.lines import NAME, NOTES, TEXT, Change, Line, Transaction, note

WIDER = replace(NOTES, columns=(*NOTES.columns, Column("more", TEXT, pa.string())))


def table(line: Line) -> Table:
    found = line.batch().target(NAME).open()
    assert found is not None
    return found


@pytest.mark.parametrize("mode", [LATEST, HISTORY])
@pytest.mark.parametrize("is_first", [True, False])
def test_columns_of_the_first_rows_after_all_were_removed_are_noted(
    tmp_path: Path, mode: Kind, *, is_first: bool
) -> None:
    line = Line(tmp_path, "delta", mode)
    line.commit([Transaction(100, 1, [Change("c", None, note(1)), Change("c", None, note(2))])])
    descriptions.store(table(line), Stored("1", {"id": "1"}), repeated(table(line), line.batch(), NAME))
    line.commit([Transaction(110, 2, [Change("t")])])
    if not is_first:
        line.commit([Transaction(115, 3, [Change("c", None, note(3))])])
    line.commit([Transaction(120, 4, [Change("c", None, {**note(4), "more": "m"})])], schema=WIDER)
    known = descriptions.stored(table(line))
    assert known is not None
    assert {*descriptions.whole(known, WIDER)} == {*NOTES.row_type.names, *(["more"] if is_first else [])}
