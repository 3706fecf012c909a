"""Parts of a replica's table by its key: which rows they have, whatever files are left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.sinks.replica.compare import ComparedColumns, KeyRange, ReplicaVersion
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.table import Bounds, Mark, Table

MARK = Mark(None, -1, "{}")


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A table of four files, of the numbers 0 to 9, 10 to 19, 20 to 29, and a null."""
    options: Mapping[str, str] = {}
    root = str(tmp_path / "lake")
    if request.param == "iceberg":
        (tmp_path / "lake").mkdir()
        options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
        root = "iceberg://shop"
    lake = lake_at(root, options)
    lake.create("t", rows(*range(10)), MARK, None)
    for numbers in (range(10, 20), range(20, 30), [None]):
        there = lake.open("t")
        assert there is not None
        there.append(rows(*numbers), MARK)
    found = lake.open("t")
    assert found is not None
    return found


def rows(*numbers: int | None) -> pa.Table:
    return pa.table({"Odd `name`": pa.array(numbers, pa.int32())})


def read(table: Table, least: int | None, most: int | None) -> set[int | None]:
    return set(table.scan(Bounds("Odd `name`", least, most)).read_all().column(0).to_pylist())


def test_a_scan_within_bounds_leaves_out_files_and_no_row_within_them(table: Table) -> None:
    everything = {*range(30), None}
    assert read(table, None, None) == everything
    for least, most in ((5, 12), (None, 3), (25, None), (12, 12), (40, None)):
        within = {each for each in range(30) if (least or 0) <= each <= (29 if most is None else most)}
        found = read(table, least, most)
        assert within | {None} <= found, (least, most)
        assert found < everything


def test_a_range_has_the_rows_behind_one_key_and_up_to_another() -> None:
    keys = [(a, b) for a in range(3) for b in range(3)]
    found = pa.table({"a": pa.array([a for a, _ in keys], pa.int16()), "b": pa.array([b for _, b in keys], pa.int64())})

    def of(after: tuple[int, int] | None, until: tuple[int, int] | None) -> list[tuple[int, int]]:
        return [(row["a"], row["b"]) for row in KeyRange(("a", "b"), after, until).of(found).to_pylist()]

    assert of(None, None) == keys
    cuts = [(0, 1), (1, 1), (2, 0)]
    parts = [of(after, until) for after, until in zip([None, *cuts], [*cuts, None], strict=True)]
    assert [part[-1] for part in parts[:-1]] == cuts
    assert [key for part in parts for key in part] == keys, "each row is in one part"


def test_a_key_whose_numbers_are_texts_in_the_replica_has_their_order(tmp_path: Path) -> None:
    lake = lake_at(str(tmp_path / "lake"), {})
    texts = pa.table({"id": ["9", "10", "100", "8"]})
    lake.create("t", texts, MARK, None)
    replica = ReplicaVersion(lake.open("t"), ComparedColumns(texts.schema, ("id",), ()), {})
    for after, until, expected in (((8,), (10,), {"9", "10"}), (None, (8,), {"8"}), ((10,), None, {"100"})):
        found = [each.rows for each in replica.within(KeyRange(("id",), after, until)).rows()]
        assert {*pa.concat_tables(found).column("id").to_pylist()} == expected


def test_rows_without_a_key_are_in_the_last_part() -> None:
    found = pa.table({"id": pa.array([1, None, 9], pa.int32())})
    parts = [KeyRange(("id",), None, (5,)), KeyRange(("id",), (5,), None)]
    assert [part.of(found).column(0).to_pylist() for part in parts] == [[1], [None, 9]]
