"""A replica as an Iceberg table: what its snapshots hold, read by the sink, by pyiceberg and by DuckDB."""

from __future__ import annotations

import os
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFileContent

from tailrace.errors import ConfigError, SinkAwayError, SinkError
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column
from tailrace.sinks.replica import again, aside, contents, writing
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.iceberg import files, index
from tailrace.sinks.replica.iceberg.index import Index
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.marks import Extent, LogPlace
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.table import LakeError, LostRaceError, Mark
from tests.unit.sinks.iceberg.lake import BAG, NAME, ORDERS, Change, Lake, order


def test_all_readers_have_the_same_rows(lake: Lake) -> None:
    lake.write(("u", None, order(1, "new")), ("d", order(2, None), None), ("c", None, order(6, None)))
    lake.write(("u", None, order(1, "newer")), ("d", order(6, None), None), ("c", None, order(2, "again")))
    expected = [order(1, "newer"), order(2, "again"), order(3), order(4), order(5)]
    assert lake.read() == [expected] * 3
    opened = lake_at("iceberg://lake", lake.options).open(NAME)
    assert opened is not None
    assert opened.count() == 5, "without reading a row"


def test_a_micro_batch_is_one_snapshot_and_is_written_once(lake: Lake) -> None:
    change = ("u", None, order(1, "new"))
    assert lake.write(change) == 1
    before = lake.table.current_snapshot()
    assert lake.write(change, again=True) == 0
    assert lake.table.current_snapshot() == before
    assert len(lake.table.metadata.snapshots) == 2


def test_a_snapshot_that_was_rolled_back_is_written_again(lake: Lake) -> None:
    first = lake.table.current_snapshot()
    lake.write(("u", None, order(1, "new")))
    assert first is not None
    lake.table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert lake.write(("u", None, order(1, "new")), again=True) == 1
    assert lake.rows()[0] == order(1, "new")


def test_a_bag_loses_as_many_equal_rows_as_were_deleted(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.write(*(("c", None, order(1)) for _ in range(3)), ("c", None, order(2)), schema=BAG)
    lake.write(("d", order(1), None), ("d", order(1), None), ("u", order(2), order(3)), schema=BAG)
    assert lake.read() == [[order(1), order(3)]] * 3
    lake.write(("d", order(1), None), ("c", None, order(1)), ("d", order(9), None), schema=BAG)
    assert lake.read() == [[order(1), order(3)]] * 3


def test_a_renamed_column_stays_one_column_and_no_row_is_written_again(lake: Lake) -> None:
    ids = {field.name: field.field_id for field in lake.table.schema().fields}
    files = {task.file.file_path for task in lake.table.scan().plan_files()}
    lake.alter(("note", "remark"))
    there = lake.table
    assert {field.name: field.field_id for field in there.schema().fields} == {"id": ids["id"], "remark": ids["note"]}
    assert {task.file.file_path for task in there.scan().plan_files()} == files
    assert lake.read() == [[{"id": id_, "remark": "n"} for id_ in range(1, 6)]] * 3
    renamed = replace(ORDERS, columns=(ORDERS.columns[0], replace(ORDERS.columns[1], name="remark")))
    lake.write(("u", None, {"id": 1, "remark": "new"}), schema=renamed)
    assert lake.read() == [[{"id": 1, "remark": "new"}, *({"id": id_, "remark": "n"} for id_ in range(2, 6))]] * 3


def test_a_renamed_key_is_found(lake: Lake) -> None:
    lake.alter(("id", "number"))
    schema = replace(
        ORDERS,
        key=("number",),
        identity=("number",),
        columns=(replace(ORDERS.columns[0], name="number"), ORDERS.columns[1]),
    )
    lake.write(("u", None, {"number": 1, "note": "new"}), ("d", {"number": 2, "note": None}, None), schema=schema)
    assert lake.read() == [[{"number": id_, "note": "new" if id_ == 1 else "n"} for id_ in (1, 3, 4, 5)]] * 3


def test_a_dropped_column_that_comes_again_is_another_one(lake: Lake) -> None:
    lake.alter(dropped=["note"])
    assert lake.read() == [[{"id": id_} for id_ in range(1, 6)]] * 3
    lake.write(("u", None, order(1, "new")))
    assert lake.read() == [[order(1, "new"), *(order(id_, None) for id_ in range(2, 6))]] * 3


@pytest.mark.parametrize(
    ("kind", "schema", "value", "rewritten"),
    [(pa.int64(), "int64", 1 << 40, False), (pa.string(), "string", "one", True)],
)
def test_a_wider_type(lake: Lake, kind: pa.DataType, schema: str, value: Any, rewritten: bool) -> None:
    first = Column("amount", ConnectSchema("int32", True), pa.int32())
    narrow = replace(ORDERS, columns=(*ORDERS.columns, first))
    lake.write(("u", None, order(1, amount=7)), schema=narrow)
    before = {field.name: field.field_id for field in lake.table.schema().fields}
    files = {task.file.file_path for task in lake.table.scan().plan_files()}
    wide = replace(ORDERS, columns=(*ORDERS.columns, Column("amount", ConnectSchema(schema, True), kind)))
    lake.write(("u", None, order(2, amount=value)), schema=wide)
    after = {field.name: field.field_id for field in lake.table.schema().fields}
    assert (after == before) is not rewritten
    assert (files <= {task.file.file_path for task in lake.table.scan().plan_files()}) is not rewritten
    amounts = {row["id"]: row["amount"] for row in lake.rows()}
    assert amounts == {1: "7" if rewritten else 7, 2: value, 3: None, 4: None, 5: None}
    assert lake.read() == [lake.rows()] * 3


def test_a_key_that_is_widened_is_found(lake: Lake) -> None:
    wide = replace(ORDERS, columns=(Column("id", ConnectSchema("int64", False), pa.int64()), ORDERS.columns[1]))
    lake.write(("u", None, order(1, "new")), ("d", order(2, None), None), ("c", None, order(1 << 40)), schema=wide)
    assert lake.read() == [[order(1, "new"), order(3), order(4), order(5), order(1 << 40)]] * 3


def test_an_index_of_another_snapshot_is_built_again(written_by_others: Lake) -> None:
    lake = written_by_others
    lake.write(("u", None, order(1, "new")))
    assert Index.stored(lake.table) is not None
    rows = pa.table({"id": pa.array([9], pa.int32()), "note": ["foreign"]})
    lake.table.append(rows)
    assert Index.stored(lake.table) is None
    lake.write(("u", None, order(9, "ours")), ("u", None, order(1, "newer")))
    assert lake.read() == [[order(1, "newer"), *(order(id_) for id_ in range(2, 6)), order(9, "ours")]] * 3


def test_a_process_that_died_behind_its_commit_leaves_no_wrong_index(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.write(("u", None, order(1, "new")))
    with monkeypatch.context() as patch:
        patch.setattr(Index, "save", _die)
        with pytest.raises(SinkError):
            lake.write(("d", order(1, None), None), ("c", None, order(6)))
    lake.write(("d", order(1, None), None), ("c", None, order(6)), again=True)
    lake.write(("u", None, order(6, "new")), ("c", None, order(1, "again")))
    expected = [order(1, "again"), *(order(id_) for id_ in range(2, 6)), order(6, "new")]
    assert lake.read() == [expected] * 3


def _die(*_: Any) -> None:
    raise RuntimeError("killed")


def test_a_table_without_its_first_snapshot_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("tailrace.sinks.replica.iceberg.lake.commit", _die)
        with pytest.raises(SinkError):
            lake.write(("c", None, order(1)))
    assert lake.table.current_snapshot() is None
    lake.write(("c", None, order(1)), again=True)
    assert lake.read() == [[order(1)]] * 3


def test_of_two_writers_one_loses_the_race(lake: Lake) -> None:
    one, other = (lake_at("iceberg://lake", lake.options).open(NAME) for _ in range(2))
    assert one is not None
    assert other is not None
    rows = pa.table({"id": pa.array([9], pa.int32()), "note": ["x"]})
    one.append(rows, Mark("tailrace/query", 100, "{}"))
    with pytest.raises(LostRaceError):
        other.append(rows, Mark("tailrace/query", 100, "{}"))
    assert len(lake.rows()) == 6


def test_several_rows_of_a_key_are_all_replaced(written_by_others: Lake) -> None:
    lake = written_by_others
    """Another writer has doubled a row, or the table had no key before."""
    lake.table.append(pa.table({"id": pa.array([1, 1, 2], pa.int32()), "note": ["x", "y", "z"]}))
    lake.write(("u", None, order(1, "one")), ("d", order(2, None), None))
    assert lake.read() == [[order(1, "one"), order(3), order(4), order(5)]] * 3


def test_rows_that_another_program_deleted_by_position_stay_deleted(written_by_others: Lake) -> None:
    lake = written_by_others
    lake.table.delete("id = 3")
    lake.write(("u", None, order(1, "new")), ("d", order(3, None), None))
    assert lake.read() == [[order(1, "new"), order(2), order(4), order(5)]] * 3


def test_a_copy_that_is_discarded_leaves_no_file(lake: Lake) -> None:
    place = again.place_of(lake.batch(1), NAME)
    writing.created(lake.batch(1), place, pa.table({"id": [1]}), Mark(None, -1, "{}"))
    assert again.folders("iceberg://lake", lake.options) == {NAME}
    again.discard("iceberg://lake", NAME, lake.options)
    assert again.folders("iceberg://lake", lake.options) == frozenset()
    assert not list((lake.folder / "lake_reading").rglob("*.parquet"))
    assert aside.folders("iceberg://lake", lake.options) == frozenset()


def test_a_catalog_that_does_not_answer_is_waited_for(tmp_path: Path) -> None:
    options = {"type": "rest", "uri": "http://localhost:9"}
    with pytest.raises(SinkAwayError, match="check lake"):
        contents.write(MicroBatch("iceberg://lake", "query", 1, options), NAME, Part(Extent(0, None, LogPlace(1, 1))))


@pytest.mark.parametrize("wrong", [{"type": "oracle"}, {"type": "sql", "uri": "nonsense"}, {"type": "sql"}])
def test_properties_that_make_no_catalog_are_an_error_with_a_remedy(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="pyiceberg refuses the catalog") as caught:
        lake_at("iceberg://lake", wrong).names()
    assert caught.value.where == "sink.replica.catalog"


def test_a_table_that_another_program_has_partitioned_is_not_written(lake: Lake) -> None:
    with lake.table.update_spec() as update:
        update.add_identity("note")
    with pytest.raises(SinkError, match="partitions"):
        lake.write(("u", None, order(1, "new")))


def test_an_index_lies_where_nobody_else_may_write(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAILRACE_INDEX", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"tailrace-{os.getuid()}-index").mkdir(mode=0o777)
    with pytest.raises(SinkError, match="is not this user's alone"):
        lake.write(("u", None, order(1, "new")))


def test_an_index_lies_where_its_variable_says(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_INDEX", str(tmp_path / "volume" / "index"))
    lake.write(("u", None, order(1, "new")))
    assert [each.name for each in (tmp_path / "volume" / "index").iterdir()] == [str(lake.table.metadata.table_uuid)]
    (tmp_path / "file").touch()
    monkeypatch.setenv("TAILRACE_INDEX", str(tmp_path / "file" / "index"))
    with pytest.raises(SinkError, match="cannot be made: Not a directory; set TAILRACE_INDEX to another"):
        lake.write(("u", None, order(1, "newer")))


def test_deletes_by_value_of_another_program_are_an_error(
    written_by_others: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = written_by_others
    lake.write(("d", order(1, None), None))
    monkeypatch.setattr(files, "DataFileContent", SimpleNamespace(POSITION_DELETES=DataFileContent.EQUALITY_DELETES))
    with pytest.raises(LakeError, match="another program has deleted rows"):
        lake.rows()


def test_an_index_holds_what_a_dictionary_would(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against many small changes, runs that are merged early, and files that are forgotten."""
    monkeypatch.setattr(index, "_SPARE_FILES", 2)
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.runs._AT_A_TIME", 5)
    dice, expected = random.Random(7), dict.fromkeys(range(1, 6), "n")
    for number in range(24):
        changes: list[Change] = []
        for id_ in dice.sample(range(60), 8):
            if id_ in expected and dice.random() < 0.4:
                del expected[id_]
                changes.append(("d", order(id_, None), None))
            else:
                changes.append(("u" if id_ in expected else "c", None, order(id_, str(number))))
                expected[id_] = str(number)
        lake.write(*changes)
    assert {row["id"]: row["note"] for row in lake.rows()} == expected
    assert lake.read() == [lake.rows()] * 3
    stored = Index.stored(lake.table)
    assert stored is not None
    assert len(stored.names) < 6
