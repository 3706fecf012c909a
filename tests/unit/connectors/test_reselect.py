"""Values that the log did not repeat, filled by a lookup that knows no database."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from tailrace.config.processors import Reselect
from tailrace.connectors.columns import CapturedTable, ColumnRules
from tailrace.connectors.reselect import LookupFailed, Places, Reselector
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tests.unit.connectors.rules import INTEGER, column, config

TABLE = TableId("shop", "dbo", "people")


@dataclass
class Held:
    """A table in memory, by the text of its key; None refuses every query."""

    texts: dict[str, str | None] | None
    asked: list[list[str | None]] = field(default_factory=list)

    def key(self, table: CapturedTable) -> tuple[str, ...]:
        return table.schema.key

    def rows(self, table: CapturedTable, keys: list[pa.Array], columns: list[str]) -> tuple[Places, list[pa.Array]]:
        self.asked.append(keys[0].to_pylist())
        if self.texts is None:
            raise LookupFailed("no access to dbo.people")
        found = [place for place, key in enumerate(self.asked[-1]) if key in self.texts]
        texts = [self.texts[self.asked[-1][place] or ""] for place in found]
        return np.array(found, np.int64), [pa.array(texts, pa.string())]

    def close(self) -> None:
        pass


def table() -> CapturedTable:
    columns = [column("id", INTEGER, required=True), column("note")]
    found = ColumnRules(config()).captured(TABLE, columns, ("id",), ("id",))
    assert found is not None
    return found


def fill(held: Held, *, strict: bool = False) -> tuple[list[object], list[object] | None]:
    """Notes of five rows, of which the log did not repeat the second and third, and the fifth is null."""
    wish = Reselect((), (), True, True, False, strict)
    of = table()
    fields = [pa.array([1, 2, 3, 4, 5], pa.int32()), pa.array(["a", None, None, "d", None], pa.string())]
    after = pa.StructArray.from_arrays(fields, fields=list(of.schema.row_type))
    unchanged = pa.StructArray.from_arrays([pa.array([False, True, True, False, False])], names=["note"])
    keys = [pa.array(["1", "2", "3", "4", "5"], pa.string())]
    filled, still = Reselector(wish, held).fill(of, keys, after, unchanged)
    return filled.field(1).to_pylist(), None if still is None else still.field(0).to_pylist()


def test_only_rows_that_lack_a_value_are_looked_up() -> None:
    held = Held({"2": "b", "3": None, "5": "e"})
    assert fill(held) == (["a", "b", None, "d", "e"], None)
    assert held.asked == [["2", "3", "5"]]


def test_a_row_that_was_deleted_keeps_its_unknown_values(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert fill(Held({"3": "c"})) == (["a", None, "c", "d", None], [False, True, False, False, False])
    assert "dbo.people: 2 rows are gone by now" in caplog.text


def test_a_refused_query_is_a_warning_or_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert fill(Held(None)) == (["a", None, None, "d", None], [False, True, True, False, False])
    assert "dbo.people: columns cannot be selected again: no access to dbo.people" in caplog.text
    with pytest.raises(SourceError, match=r"dbo\.people: columns cannot be selected again"):
        fill(Held(None), strict=True)
