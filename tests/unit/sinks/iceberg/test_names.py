"""Names of columns and of what is within them that Parquet files of Iceberg do not have as they are."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

import pyarrow as pa
from pyiceberg.types import StringType

from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.table import Mark
from tests.unit.sinks.iceberg.lake import Lake, by_duckdb

TAGS = pa.list_(pa.struct([("last seen", pa.int32()), ("on", pa.bool_())]))
PERSON = pa.struct([("first name", pa.string()), ("1x", pa.int32()), ("ä.b", TAGS)])


def test_values_within_columns_stay_whatever_their_names_are_and_so_do_nulls(tmp_path: Path) -> None:
    """Those files have `first_x20name`."""
    lake = lake_at("iceberg://lake", Lake(tmp_path).options)
    people = [{"first name": "Ada", "1x": 1, "ä.b": [{"last seen": 2, "on": True}, None]}, None, {"first name": None}]
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "the person": pa.array(people, PERSON),
            "by key": pa.array([[("k", people[0])], None, []], pa.map_(pa.string(), PERSON)),
        }
    )
    lake.create("people", rows, Mark(None, -1, "{}"), None)
    there = lake.open("people")
    assert there is not None
    expected = rows.to_pylist()
    assert there.scan().read_all().to_pylist() == expected
    there.append(rows, Mark(None, -1, "{}"))
    there.maintenance().join(32 << 20, Mark(None, -1, "{}"))
    again = lake.open("people")
    assert again is not None
    assert len(again.maintenance().live) == 1
    assert again.scan().read_all().to_pylist() == [*expected, *expected]
    assert by_duckdb(Lake(tmp_path).catalog.load_table(("lake", "people"))) == sorted(
        [*expected, *expected], key=itemgetter("id")
    )


def test_a_column_that_another_program_has_changed_within_is_read(tmp_path: Path) -> None:
    lake = lake_at("iceberg://lake", Lake(tmp_path).options)
    rows = pa.table({"id": pa.array([1], pa.int32()), "one": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))})
    lake.create("people", rows, Mark(None, -1, "{}"), None)
    with Lake(tmp_path).catalog.load_table(("lake", "people")).update_schema() as update:
        update.add_column(("one", "b"), StringType())
    there = lake.open("people")
    assert there is not None
    assert there.scan().read_all().to_pylist() == [{"id": 1, "one": {"a": 1, "b": None}}]
