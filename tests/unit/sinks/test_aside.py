"""A table whose rows its replica cannot take is set aside: nothing is lost or doubled, and a new snapshot ends it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tailrace.errors import DecodeError, SinkError, TableError
from tailrace.model.change import COMMIT, ChangeBatch, SnapshotRead
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import aside
from tailrace.sinks.replica.aside import folders, tables_set_aside
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.delta.maintenance import properties
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.target import read_table
from tailrace.sinks.replica.upkeep import Upkeep

NAME = "public.people"
TABLE = TableSchema(
    TableId("db", "public", "people"),
    (
        Column("id", ConnectSchema("int64", False), pa.int64()),
        Column("born", ConnectSchema("int32", True, "io.debezium.time.Date"), pa.int32()),
    ),
    ("id",),
    ("id", "born"),
)
CAESAR = -757_600  # a day in the year 105 BC


def rows(op: str, *images: tuple[int, int], commit: int | None = None, snapshot: str | None = None) -> ChangeBatch:
    """Changes of one transaction, or rows of a snapshot."""
    after = pa.array([{"id": id_, "born": born} for id_, born in images], TABLE.row_type)
    columns: dict[str, Any] = {
        "op": pa.array([op] * len(images)),
        "order": pa.array(range(len(images)), pa.int64()),
        "ts_us": pa.array([5] * len(images), pa.int64()),
        "before": pa.nulls(len(images), TABLE.row_type),
        "after": after,
    }
    if commit is not None:
        columns[COMMIT] = pa.array([commit] * len(images), pa.int64())
    read = None if snapshot is None else SnapshotRead(f"read of {snapshot}", snapshot, 0)
    return ChangeBatch(TABLE, pa.RecordBatch.from_pydict(columns), read)


class Night:
    """A replica's root, written as the sink's task does it."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def write(self, number: int, *batches: ChangeBatch, rows_a_part: int = 1000, sets_aside: bool = True) -> str | None:
        """A micro-batch; of what the table was set aside in it."""
        known = folders(self.root, {})
        batch = MicroBatch(self.root, "q", number, {}, upkeep=Upkeep(120), aside=known, sets_aside=sets_aside)
        error, reports = None, []
        for part in parts((pa.py_buffer(each.to_ipc()) for each in batches), rows_a_part):
            report = aside.write(batch, NAME, part, is_aside=error is not None)
            error = report.aside or error
            reports.append(report)
        assert aside.keep(batch, NAME, reports) == []
        return error

    def held(self) -> list[int]:
        return sorted(row["id"] for row in read_table(self.root, NAME).to_pylist())

    def letters(self) -> list[dict[str, Any]]:
        return sorted(self.letter_table.to_pyarrow_table().to_pylist(), key=lambda row: row["after"])

    @property
    def letter_table(self) -> DeltaTable:
        return DeltaTable(f"{self.root}/_aside/{NAME}")

    def ids(self) -> list[int]:
        return [json.loads(row["after"])["id"] for row in self.letters()]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def test_a_table_is_set_aside_and_read_again(night: Night) -> None:
    assert night.write(0, rows("r", (1, 0), snapshot="s0")) is None
    assert tables_set_aside(night.root, {}) == ()
    assert "no counterpart" in str(night.write(1, rows("c", (2, 0), (3, CAESAR), commit=10)))
    assert night.write(2, rows("c", (4, 0), commit=20)) is None
    assert night.held() == [1], "the changes of the part that fails are dead letters, all of them"
    assert night.ids() == [2, 3, 4]
    letter = next(row for row in night.letters() if "105" in row["after"] or "-0104" in row["after"])
    assert (letter["op"], letter["position"], letter["before"]) == ("c", "10", None)

    (table,) = tables_set_aside(night.root, {})
    assert (table.table, table.changes) == (NAME, 3)
    assert "column born" in table.error

    assert "no counterpart" in str(night.write(3, rows("r", (1, 0), (3, CAESAR), snapshot="s1"))), "not fixed yet"
    assert night.held() == [1]
    assert night.write(4, rows("c", (5, 0), commit=30)) is None
    assert night.ids() == [2, 3, 4, 5]

    assert night.write(5, rows("r", (1, 0), (2, 0), (4, 0), snapshot="s2"), rows("c", (6, 0), commit=40)) is None
    assert tables_set_aside(night.root, {}) == ()
    assert night.write(6, rows("c", (7, 0), commit=50)) is None
    assert night.held() == [1, 2, 4, 6, 7]
    assert night.ids() == [2, 3, 4, 5], "what was stored stays"

    assert "no counterpart" in str(night.write(7, rows("c", (8, CAESAR), commit=60))), "and again"
    assert night.ids() == [2, 3, 4, 5, 8]
    assert len(tables_set_aside(night.root, {})) == 1


def test_a_repeated_micro_batch_stores_nothing_twice(night: Night) -> None:
    """Whatever part of it was written before, and under whatever number it comes again."""
    first = [rows("c", (1, 0), (2, 0), commit=10), rows("c", (3, CAESAR), commit=20), rows("c", (4, 0), commit=30)]
    assert night.write(0, *first[:2], rows_a_part=1)
    for number, some in ((0, first[:2]), (0, first), (0, first), (7, first[1:])):
        night.write(number, *some, rows_a_part=1)
        assert night.held() == [1, 2]
    assert night.ids() == [3, 4]
    night.write(8, rows("c", (4, 0), commit=30), rows("c", (5, 0), commit=40))
    assert night.ids() == [3, 4, 5]


@pytest.mark.slow
def test_small_files_of_dead_letters_are_joined_and_each_is_stored_once(night: Night) -> None:
    night_long = [rows("c", (number, CAESAR), (-number, CAESAR), commit=number) for number in range(1, 37)]
    for number, changes in enumerate(night_long):
        night.write(number, changes)
    assert night.letter_table.metadata().configuration == properties(120 * 60)
    assert len(night.letter_table.file_uris()) < 8
    night.write(35, night_long[-1])
    night.write(36, *night_long[-8:])
    stored = [json.loads(text)["id"] for text in night.letter_table.to_pyarrow_table().column("after").to_pylist()]
    assert sorted(stored) == [*range(-36, 0), *range(1, 37)]
    assert all(stored.index(-number) == stored.index(number) + 1 for number in range(1, 37)), "in their order"
    assert [(table.table, table.changes) for table in tables_set_aside(night.root, {})] == [(NAME, 72)]


def test_what_a_task_left_that_was_killed_in_its_first_dead_letters_is_no_table(night: Night) -> None:
    left = Path(night.root) / "_aside" / NAME / "part-00000.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"PAR1")
    assert tables_set_aside(night.root, {}) == ()
    assert night.write(0, rows("c", (1, CAESAR), commit=10))
    assert [table.table for table in tables_set_aside(night.root, {})] == [NAME]


def test_dead_letters_that_cannot_be_read_are_an_error_with_their_place(night: Night) -> None:
    night.write(0, rows("c", (1, CAESAR), commit=10))
    (Path(night.root) / "_aside" / NAME / "_delta_log" / "00000000000000000000.json").write_text("{")
    with pytest.raises(SinkError, match=f"_aside/{NAME}"):
        tables_set_aside(night.root, {})


def test_numbers_that_json_lacks_are_text_in_dead_letters() -> None:
    table = TableSchema(
        TableId("db", "public", "odd"),
        (
            Column("x", ConnectSchema("double", True), pa.float64()),
            Column("list", ConnectSchema("array", True), pa.list_(pa.float64())),
        ),
        (),
        (),
    )
    images = pa.array([{"x": math.nan, "list": [1.5, -math.inf]}, {"x": 0.5, "list": None}], table.row_type)
    assert aside._texts(table, images).to_pylist() == [
        '{"x": "NaN", "list": [1.5, "-Infinity"]}',
        '{"x": 0.5, "list": null}',
    ]


def test_the_first_snapshot_fails(night: Night) -> None:
    """There is no replica yet, or a part of one; the rest of the snapshot is left out, and the log is stored."""
    assert night.write(0, rows("r", (1, CAESAR), snapshot="s0"))
    assert night.write(1, rows("r", (2, 0), snapshot="s0"), rows("c", (3, 0), commit=10)) is None
    assert night.ids() == [3]
    assert len(tables_set_aside(night.root, {})) == 1
    assert night.write(2, rows("r", (2, 0), (3, 0), snapshot="s1")) is None
    assert (night.held(), tables_set_aside(night.root, {})) == ([2, 3], ())


def test_a_replica_that_was_deleted_is_set_aside_until_a_snapshot(night: Night) -> None:
    """As the remedy of a changed type asks for: changes alone would make a replica that lacks all other rows."""
    night.write(0, rows("r", (1, 1), (2, 2), snapshot="s1"))
    assert night.write(1, rows("c", (3, CAESAR), commit=10)) is not None
    shutil.rmtree(Path(night.root) / NAME)
    assert [each.table for each in tables_set_aside(night.root, {})] == [NAME]
    assert night.write(2, rows("c", (4, 4), commit=20)) is None
    assert not (Path(night.root) / NAME).exists()
    assert night.ids() == [3, 4]
    night.write(3, rows("r", (1, 1), (2, 2), (4, 4), snapshot="s2"), rows("c", (5, 5), commit=30))
    assert night.held() == [1, 2, 4, 5]
    assert tables_set_aside(night.root, {}) == ()


def test_a_later_part_of_a_snapshot_fails(night: Night) -> None:
    both = rows("r", (1, 0), snapshot="s0"), rows("r", (2, CAESAR), snapshot="s0")
    assert night.write(0, *both, rows_a_part=1)
    assert night.write(0, *both, rows_a_part=1) is None
    assert night.write(1, rows("c", (3, 0), commit=10)) is None
    assert (night.held(), night.ids()) == ([1], [3])
    assert night.write(2, rows("r", (4, 0), snapshot="s1")) is None
    assert (night.held(), tables_set_aside(night.root, {})) == ([4], ())


def test_where_tables_are_not_set_aside_the_error_is_raised(night: Night) -> None:
    with pytest.raises(DecodeError):
        night.write(0, rows("c", (1, CAESAR), commit=10), sets_aside=False)
    assert folders(night.root, {}) == frozenset()
    gone = rows("d", (1, 0), commit=10)
    with pytest.raises(TableError, match="does not say which"):
        night.write(0, gone, sets_aside=False)
    told = str(night.write(0, gone))
    assert "does not say which" in told
    assert "then run `tailrace retry`" in told
    assert [row["op"] for row in night.letters()] == ["d"]


def test_a_storage_that_fails_sets_nothing_aside(night: Night) -> None:
    night.write(0, rows("c", (1, 0), commit=10))
    broken = Path(night.root) / NAME / "_delta_log" / "00000000000000000000.json"
    broken.write_text("{")
    with pytest.raises(Exception, match=NAME):
        night.write(1, rows("c", (2, 0), commit=20))
    assert folders(night.root, {}) == frozenset()
