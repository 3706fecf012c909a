"""Replicas with names that a catalog takes, and with columns about the last change of each row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.ports import TableOverview
from tailrace.errors import SinkError
from tailrace.model.change import ChangeBatch, SnapshotRead
from tailrace.model.native import native_rows
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.sink_check import check
from tailrace.sinks.replica import contents
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.compare import BucketTotals, ReplicaVersion
from tailrace.sinks.replica.layout import ReplicaLayout, catalog_name, table_folder
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.target import Target, read_table
from tests.unit.events.changes import changes, table

METADATA = {"commit_time": "_changed", "position": "_position", "op": "_op"}
TIME = datetime(2026, 11, 21, tzinfo=UTC)
ORDERS = TableSchema(
    TableId("shop", "Sales", "Order Lines"),
    (
        Column("Id", ConnectSchema("int32"), pa.int32()),
        Column("Unit Price", ConnectSchema("string", optional=True), pa.string()),
    ),
    ("Id",),
    ("Id",),
)


def write(root: Path, layout: ReplicaLayout, number: int, *batches: ChangeBatch) -> None:
    blobs = [pa.py_buffer(batch.to_ipc()) for batch in batches]
    for part in parts(iter(blobs), layout=layout):
        micro_batch = MicroBatch(str(root), "q", number, layout=layout)
        contents.write(micro_batch, batches[0].table.id.unique, part)


def at(number: int, of: TableSchema, *rows: dict[str, Any]) -> ChangeBatch:
    """Changes committed at a position, seconds after TIME."""
    times = [{**row, "ts_us": int(TIME.timestamp() + number) * 1_000_000} for row in rows]
    return changes(of, *times, commit=pa.array([number] * len(rows), pa.int64()))


def snapshot(of: TableSchema, *rows: dict[str, Any]) -> ChangeBatch:
    given = at(0, of, *rows)
    without = given.rows.drop_columns(["commit"])
    return ChangeBatch(of, without, SnapshotRead("r", "s", 16))


def row(key: int, price: str | None) -> dict[str, Any]:
    return {"Id": key, "Unit Price": price}


def test_names_and_metadata_of_each_row(tmp_path: Path) -> None:
    layout = ReplicaLayout("catalog", METADATA)
    read = snapshot(ORDERS, *({"op": "r", "after": row(key, "1")} for key in (1, 2, 3)))
    write(tmp_path, layout, 0, read)
    write(
        tmp_path,
        layout,
        1,
        at(17, ORDERS, {"op": "u", "after": row(1, "2")}, {"op": "d", "before": row(2, None)}),
        at(18, ORDERS, {"op": "c", "after": row(4, None)}),
    )
    assert [path.name for path in tmp_path.iterdir()] == ["sales_order_lines"]
    found = sorted(read_table(str(tmp_path), ORDERS.id, names="catalog").to_pylist(), key=lambda each: each["id"])
    assert [(each["id"], each["unit_price"], each["_op"], each["_position"]) for each in found] == [
        (1, "2", "u", f"{17:016X}"),
        (3, "1", "r", f"{16:016X}"),
        (4, None, "c", f"{18:016X}"),
    ]
    assert [(each["_changed"] - TIME).total_seconds() for each in found] == [17, 0, 18]


def test_a_chunk_without_rows_has_the_columns_too() -> None:
    applied = ReplicaLayout("source", METADATA).applied(snapshot(ORDERS))
    assert applied.rows.column("after").type.field("_position").type == pa.string()


def test_a_replica_in_other_names_equals_its_source(tmp_path: Path) -> None:
    layout = ReplicaLayout("catalog", METADATA)
    write(tmp_path, layout, 0, snapshot(ORDERS, {"op": "r", "after": row(1, "1")}))
    replica, compared = ReplicaVersion.of(Target(str(tmp_path), ORDERS.id.unique, names="catalog"), ORDERS)
    assert (compared.schema.names, compared.key, compared.missing) == (["Id", "Unit Price"], ("Id",), ())
    images = pa.array([row(1, "1")], ORDERS.row_type)
    source = [compared.digests(pa.Table.from_struct_array(native_rows(ORDERS, images)))]
    assert not BucketTotals(replica.rows()).differing(BucketTotals(source)).any()


def test_renamed_columns_follow_in_catalog_names(tmp_path: Path) -> None:
    layout = ReplicaLayout("catalog")
    write(tmp_path, layout, 0, at(1, ORDERS, {"op": "c", "after": row(1, "1")}))
    renamed = replace(ORDERS, columns=(ORDERS.columns[0], replace(ORDERS.columns[1], name="Net Price")))
    nothing = TableSchema(ORDERS.id, (), (), ())
    change = SchemaChange(ALTER, None, 2, renamed=(("Unit Price", "Net Price"),))
    altered = replace(at(2, nothing, {"op": "s"}), schema_change=change)
    write(tmp_path, layout, 1, altered, at(3, renamed, {"op": "c", "after": {"Id": 2, "Net Price": "2"}}))
    found = read_table(str(tmp_path), ORDERS.id, names="catalog").to_pylist()
    assert sorted((each["id"], each["net_price"]) for each in found) == [(1, "1"), (2, "2")]


def test_a_table_without_a_key_has_no_metadata(tmp_path: Path) -> None:
    bag = table("bag", (), ("id", "code", "note"))
    image = {"id": 1, "code": "a", "note": None}
    write(tmp_path, ReplicaLayout("source", METADATA), 0, at(1, bag, *[{"op": "c", "after": image}] * 2))
    write(tmp_path, ReplicaLayout("source", METADATA), 1, at(2, bag, {"op": "d", "before": image}))
    assert read_table(str(tmp_path), bag.id).to_pylist() == [image]


def test_columns_of_one_name_are_an_error_that_names_both() -> None:
    twice = replace(ORDERS, columns=(*ORDERS.columns, replace(ORDERS.columns[1], name="unit_price")))
    with pytest.raises(SinkError, match="the columns Unit Price and unit_price would both be named unit_price"):
        ReplicaLayout("catalog").applied(at(1, twice, {"op": "c", "after": {"Id": 1}}))
    with pytest.raises(SinkError, match="a column Unit Price, and op of the changes would have the same name"):
        ReplicaLayout("source", {"op": "Unit Price"}).applied(at(1, ORDERS, {"op": "c", "after": row(1, None)}))


def test_tables_of_one_name_are_found_before_the_start() -> None:
    content = {
        "source": {
            "config": {"topic.prefix": "t", "database.hostname": "h", "database.user": "u", "database.dbname": "d"}
        },
        "sink": {"replica": {"path": "lake", "names": "catalog", "metadata": {"op": "_op"}}},
        "checkpoint": "c",
    }

    class Admin:
        def overview(self) -> list[TableOverview]:
            return [TableOverview(TableId("d", "public", name), 0, 0, True) for name in ("a b", "a_b", "c")]

    definition = from_content(content, base=Path(), where="test")
    assert definition.sink.replica is not None
    assert definition.sink.replica.layout == ReplicaLayout("catalog", {"op": "_op"})
    (finding,) = check(definition, Admin())  # type: ignore[arg-type]
    assert (finding.ok, finding.what) == (
        False,
        "the replicas of public.a b and public.a_b would both be named public_a_b",
    )


def test_names_that_a_catalog_takes() -> None:
    assert table_folder("my!2Eschema.T!21", "catalog") == "my_schema_t_"
    assert catalog_name("Müller") == "m_ller"
    first, second = (catalog_name("x" * 300 + end) for end in "ab")
    assert len(first) == len(second) == 128
    assert first != second
