"""What continuous reconciliation stores of tables, and how a part of a table is bounded on both sides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailrace.errors import ConfigError
from tailrace.model.table import TableSchema
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.sides import TablePart
from tailrace.pipeline.verified import Verified, from_text, iso, to_text
from tailrace.sinks.replica.compare import KeyRange


class Numbers:
    """A table of the numbers from 0 on, as a source pages it; `count` may change between readings."""

    def __init__(self, count: int) -> None:
        self.count = count

    def page(
        self, table: TableSchema, after: tuple[str] | None, until: tuple[str] | None, size: int
    ) -> tuple[pa.Table, tuple[str] | None]:
        first = 0 if after is None else int(after[0]) + 1
        end = self.count if until is None else min(self.count, int(until[0]) + 1)
        found = [*range(first, min(first + size, end))]
        return pa.table({"id": pa.array(found, pa.int64())}), (str(found[-1]),) if found else None


def read(part: TablePart, numbers: Numbers) -> list[int]:
    return [id_ for rows in part.rows(numbers, None) for id_ in rows.column("id").to_pylist()]  # type: ignore[arg-type]


def test_the_first_reading_of_a_part_bounds_the_later_ones_and_the_replica() -> None:
    numbers = Numbers(25)
    part = TablePart(("id",), ("9",), 10)
    assert read(part, numbers) == [*range(10, 20)]
    assert (part.until, part.is_last, part.range) == (("19",), False, KeyRange(("id",), (9,), (19,)))
    assert read(part, numbers) == [*range(10, 20)]
    last = TablePart(("id",), part.until, 10)
    assert read(last, numbers) == [20, 21, 22, 23, 24]
    assert (last.until, last.is_last, last.range) == (None, True, KeyRange(("id",), (19,), None))
    numbers.count = 45
    assert read(last, numbers) == [*range(20, 45)], "the last part has what comes behind it"


def test_a_part_without_a_row_is_the_last_one() -> None:
    part = TablePart(("id",), None, 10)
    assert read(part, Numbers(0)) == []
    assert (part.is_last, part.range) == (True, KeyRange(("id",)))


def test_what_is_stored_comes_back() -> None:
    place = Verified(up_to=1.5, key=("a", "b"), after=("7", "8"), rows=3, total=9)
    tables = {"public.t": replace(place, not_compared={"c": "why"}, differs="1 missing"), "b": Verified()}
    assert from_text(to_text(tables)) == tables
    assert (tables["public.t"].percent, tables["b"].percent) == (33, 0)
    assert (iso(tables["public.t"].up_to), iso(None)) == ("1970-01-01T00:00:01+00:00", None)


@pytest.mark.parametrize(
    ("sink", "reconcile", "said"),
    [
        ({"console": {}}, {"continuous": True}, "compares the tables of a replica, and the sink console has none"),
        ({"replica": {"path": "r"}}, {"continuous": True, "rate": 0}, "rate"),
        ({"replica": {"path": "r"}}, {"continuos": True}, "continuous"),
        ({"replica": {"path": "r", "mode": "changes"}}, {"continuous": True}, "a replica holds changes"),
    ],
)
def test_wrong_settings_are_errors(tmp_path: Path, sink: dict[str, Any], reconcile: dict[str, Any], said: str) -> None:
    content = {"source": {"config": "c.json"}, "sink": sink, "checkpoint": "state", "reconcile": reconcile}
    with pytest.raises(ConfigError) as caught:
        from_content(content, base=tmp_path, where="p.yaml")
    assert said in str(caught.value)
