"""A replica as an Iceberg table: what its snapshots hold, read by the sink, by pyiceberg and by DuckDB."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table

from tailrace.errors import ConfigError, SinkAwayError, SinkError
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import again, aside, contents, writing
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.iceberg import files, index
from tailrace.sinks.replica.iceberg.index import Index
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.marks import Extent, Place
from tailrace.sinks.replica.parts import Part, parts
from tailrace.sinks.replica.table import LakeError, LostRaceError, Mark
from tailrace.sinks.replica.target import read_table
from tailrace.sinks.replica.upkeep import Upkeep
from tests.behaviour.engines import catalog

NAME = "public.orders"
ORDERS = TableSchema(
    TableId("db", "public", "orders"),
    (
        Column("id", ConnectSchema("int32", False), pa.int32()),
        Column("note", ConnectSchema("string", True), pa.string()),
    ),
    ("id",),
    ("id",),
)
BAG = replace(ORDERS, key=(), identity=("id", "note"))
Row = dict[str, Any]
Change = tuple[str, Row | None, Row | None]


class Lake:
    """A namespace of a catalog, and a replica in it that micro-batches write as the sink's tasks do."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.options, self.number = folder, catalog(folder), 0

    @property
    def catalog(self) -> Catalog:
        return load_catalog("tailrace", **self.options)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(("lake", NAME))

    def batch(self, number: int, upkeep: Upkeep | None = None) -> MicroBatch:
        return MicroBatch("iceberg://lake", "query", number, self.options, upkeep=upkeep)

    def write(self, *changes: Change, schema: TableSchema = ORDERS, again: bool = False) -> int:
        """A micro-batch of one transaction, or the one before again; how many rows it has put and deleted."""
        self.number += not again
        columns = {
            "op": pa.array([op for op, _, _ in changes]),
            "order": pa.array(range(len(changes)), pa.int64()),
            "ts_us": pa.array([0] * len(changes), pa.int64()),
            "before": pa.array([before for _, before, _ in changes], schema.row_type),
            "after": pa.array([after for _, _, after in changes], schema.row_type),
            COMMIT: pa.array([self.number] * len(changes), pa.int64()),
        }
        batch = ChangeBatch(schema, pa.RecordBatch.from_pydict(columns))
        (part,) = parts([pa.py_buffer(batch.to_ipc())])
        report = contents.write(self.batch(self.number), NAME, part)
        return report.upserted + report.deleted

    def alter(self, *renamed: tuple[str, str], dropped: Sequence[str] = ()) -> None:
        self.number += 1
        change = SchemaChange(ALTER, None, self.number, renamed=renamed, dropped=tuple(dropped))
        part = Part(Extent(0, None, Place(self.number, 1)), change=change)
        contents.write(self.batch(self.number), NAME, part)

    def rows(self) -> list[Row]:
        found: list[Row] = read_table("iceberg://lake", NAME, self.options).sort_by(sorted_by(self.table)).to_pylist()
        return found

    def read(self) -> list[list[Row]]:
        """The rows as each reader has them."""
        by_pyiceberg = self.table.scan().to_arrow().sort_by(sorted_by(self.table)).to_pylist()
        return [self.rows(), by_pyiceberg, by_duckdb(self.table)]


def sorted_by(there: Table) -> list[tuple[str, str]]:
    return [(there.schema().fields[0].name, "ascending")]


def by_duckdb(there: Table) -> list[Row]:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for package, name in ((duckdb_extension_avro, "avro"), (duckdb_extension_iceberg, "iceberg")):
        (file,) = Path(package.__path__[0]).glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    query = f"SELECT * FROM iceberg_scan('{there.metadata_location}') ORDER BY 1"
    found: list[Row] = connection.execute(query).to_arrow_table().to_pylist()
    return found


def order(id_: int, note: str | None = "n", **more: Any) -> Row:
    return {"id": id_, "note": note, **more}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One with the orders 1 to 5."""
    made = Lake(tmp_path)
    made.write(*(("c", None, order(id_)) for id_ in range(1, 6)))
    return made


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


def test_an_index_of_another_snapshot_is_built_again(lake: Lake) -> None:
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


def test_several_rows_of_a_key_are_all_replaced(lake: Lake) -> None:
    """Another writer has doubled a row, or the table had no key before."""
    lake.table.append(pa.table({"id": pa.array([1, 1, 2], pa.int32()), "note": ["x", "y", "z"]}))
    lake.write(("u", None, order(1, "one")), ("d", order(2, None), None))
    assert lake.read() == [[order(1, "one"), order(3), order(4), order(5)]] * 3


def test_rows_that_another_program_deleted_by_position_stay_deleted(lake: Lake) -> None:
    lake.table.delete("id = 3")
    lake.write(("u", None, order(1, "new")), ("d", order(3, None), None))
    assert lake.read() == [[order(1, "new"), order(2), order(4), order(5)]] * 3


def test_small_files_and_deletes_are_joined(lake: Lake) -> None:
    for number in range(17):
        lake.write(
            ("u", None, order(1, str(number))), ("d", order(number + 10, None), None), ("c", None, order(number + 11))
        )
    before = lake.rows()
    there = lake_at("iceberg://lake", lake.options).open(NAME)
    assert there is not None
    assert len(there.maintenance().live) > 33
    there.maintenance().join(32 << 20, Mark(None, -1, "{}"))
    assert len(there.maintenance().live) == 1
    assert lake.read() == [before] * 3
    assert Index.stored(lake.table) is not None, "it knows where the rows are now"
    lake.write(("u", None, order(1, "last")), ("d", order(2, None), None))
    assert lake.read() == [[order(1, "last"), *before[2:]]] * 3
    assert lake.write(("u", None, order(1, "last")), again=True) == 0


def test_deletes_of_files_that_stay_are_joined_to_one_file(lake: Lake) -> None:
    lake.write(("d", order(1, None), None))
    lake.write(("d", order(2, None), None), ("c", None, order(7)))
    there = lake_at("iceberg://lake", lake.options).open(NAME)
    assert there is not None
    # Nothing is small for files of some bytes, and of the first one 40 % are deleted.
    there.maintenance().join(10, Mark(None, -1, "{}"))
    assert lake.read() == [[order(3), order(4), order(5), order(7)]] * 3
    lake.write(("d", order(3, None), None))
    assert lake.read() == [[order(4), order(5), order(7)]] * 3


def older(folder: Path, hours: float) -> None:
    """Make all files older than they are."""
    for file in folder.rglob("*"):
        then = file.stat().st_mtime - hours * 3600
        os.utime(file, (then, then))


def test_old_snapshots_and_what_they_alone_have_are_removed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(120)
    for number in range(6):
        lake.write(("u", None, order(1, str(number))))
    data = next(lake.folder.rglob("data"))
    (data / "of-a-killed-task.parquet").write_bytes(b"x")
    files = len(list(data.iterdir()))
    target = lake.batch(1).target(NAME)
    assert upkeep.after(target, "query", 1) is None
    assert len(list(data.iterdir())) == files, "nothing is old enough"
    older(lake.folder, 3)
    now = time.time
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance.time.time", lambda: now() + 3 * 3600)
    there = target.open()
    assert there is not None
    there.maintenance().remove(Mark(None, -1, "{}"))
    monkeypatch.undo()
    assert len(lake.table.metadata.snapshots) == 1
    live = {Path(name).name for name in there.maintenance().live}
    assert {file.name for file in data.iterdir()} == live
    assert lake.read() == [[order(1, "5"), *(order(id_) for id_ in range(2, 6))]] * 3
    assert lake.write(("u", None, order(1, "5")), again=True) == 0, "the mark stays"


def test_a_snapshot_with_a_name_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lake.table.current_snapshot()
    assert first is not None
    lake.table.manage_snapshots().create_tag(first.snapshot_id, "audit").commit()
    lake.write(("u", None, order(1, "new")))
    lake.write(("u", None, order(1, "newer")))
    older(lake.folder, 3)
    now = time.time
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance.time.time", lambda: now() + 3 * 3600)
    there = lake.batch(1).target(NAME).open()
    assert there is not None
    there.maintenance().remove(Mark(None, -1, "{}"))
    monkeypatch.undo()
    assert len(lake.table.metadata.snapshots) == 2
    assert lake.table.scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 5


def test_the_list_of_snapshots_is_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance._MOST_SNAPSHOTS", 5)
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance._SPARE", 2)
    for number in range(20):
        lake.write(("u", None, order(1, str(number))))
        there = lake.batch(1).target(NAME).open()
        assert there is not None
        assert Upkeep(120).after(lake.batch(1).target(NAME), "query", there.version) is None
    assert len(lake.table.metadata.snapshots) <= 8


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
        contents.write(MicroBatch("iceberg://lake", "query", 1, options), NAME, Part(Extent(0, None, Place(1, 1))))


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
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"tailrace-{os.getuid()}-index").mkdir(mode=0o777)
    with pytest.raises(SinkError, match="is not this user's alone"):
        lake.write(("u", None, order(1, "new")))


def test_deletes_by_value_of_another_program_are_an_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
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
