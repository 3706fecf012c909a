"""Schema changes as records: as the recordings have them, switched off, transformed, and through IPC."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from tailrace.capture.capture import Capture
from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.connector import PostgresConnector
from tailrace.connectors.postgres.position import SOURCE
from tailrace.model.change import ChangeBatch, from_ipc
from tailrace.model.marks import MARKS
from tailrace.model.schema_change import ALTER, DROP, DescribedColumn, SchemaChange
from tailrace.model.table import TableId, TableSchema
from tailrace.spark.shapes import Shaper
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import batch, changes
from tests.unit.events.event_recordings import configured

X = TableId("golden", "public", "x")
ALTERED = SchemaChange(
    ALTER,
    'ALTER TABLE "x" RENAME a TO b',
    100,
    ("b",),
    columns=(
        DescribedColumn("b", 12, "mood", 1, enum_values=("sad", "ok")),
        DescribedColumn("n", 4, "int4", 2, length=7),
    ),
    comment="comment",
    previous=TableId("golden", "public", "y"),
    renamed=(("a", "b"),),
    dropped=("c",),
)


def batch_of_change(change: SchemaChange, table: TableId = X) -> ChangeBatch:
    """The batch that holds a schema change."""
    return replace(changes(TableSchema(table, (), (), ()), {"op": "s"}), schema_change=change)


@pytest.mark.parametrize("change", [ALTERED, SchemaChange(DROP, None, 1)])
def test_a_schema_change_passes_ipc(change: SchemaChange) -> None:
    again = from_ipc(batch_of_change(change).to_ipc())
    assert isinstance(again, ChangeBatch)
    assert again.schema_change == change
    assert again.rows.to_pylist() == batch_of_change(change).rows.to_pylist()


def encoded(properties: dict[str, str], *batches: ChangeBatch) -> list[dict[str, Any]]:
    encoder = Encoder(configured(properties), SOURCE, "run")
    return [row for each in batches for rows in encoder.encode(each) for row in rows.to_pylist()]


def test_transforms_see_the_record() -> None:
    chosen = {
        "transforms": "f",
        "transforms.f.type": "io.debezium.transforms.SchemaChangeEventFilter",
        "transforms.f.schema.change.event.exclude.list": "DROP",
    }
    batches = [batch_of_change(ALTERED), batch_of_change(SchemaChange(DROP, "DROP TABLE x", 2))]
    plain, filtered = encoded({}, *batches), encoded(chosen, *batches)
    assert (len(plain), len(filtered)) == (2, 1)
    for name in ("topic", "partition", "key", "headers"):
        assert filtered[0][name] == plain[0][name]
    mine, its = (json.loads(rows[0]["value"]) for rows in (plain, filtered))
    mine["payload"]["ts_ms"] = its["payload"]["ts_ms"]
    assert mine == its
    assert len(plain[0]["headers"]) == 4


def test_none_is_written_where_none_is_wanted() -> None:
    assert encoded({"include.schema.changes": "false"}, batch_of_change(ALTERED)) == []
    # A renamed table is told to both its names, but recorded once.
    whole = batch_of_change(ALTERED)
    assert encoded({}, replace(whole, rows=whole.rows.slice(0, 0))) == []


def shaped(shape: str, *batches: ChangeBatch, steps: str = "[]") -> list[dict[str, Any]]:
    config = configured({"shape": shape, "provide.transaction.metadata": "true"})
    shaper = Shaper(Capture(PostgresConnector(config)), StructType(), steps, "run")
    bounds = [("BEGIN", -1), ("END", 100)]
    marks = [{"order": order, "status": status, "id": "7:1", "ts_us": 0} for status, order in bounds]
    chunk = Chunk([*batches], pa.RecordBatch.from_pylist(marks, MARKS))
    return [row for rows in shaper.rows(chunk) for row in rows.to_pylist()]


def test_shapes_keep_its_place() -> None:
    batches = [batch("c"), batch_of_change(ALTERED), batch("u", [4])]
    assert [row["table"] for row in shaped("arrow", *batches)] == [
        "public.things",
        "public.x",
        "public.y",
        "public.things",
        "server1.transaction",
    ]
    assert [row["op"] for row in shaped("event", *batches)] == ["c", "u"]
    *values, _, end = (json.loads(row["value"])["payload"] for row in shaped("kafka", *batches))
    assert ["tableChanges" in value for value in values] == [False, True, False]
    assert end["event_count"] == 2, "it is no event of its transaction"


def test_a_filter_step_is_for_schema_changes_too() -> None:
    for tables, count in (("public\\.x", 1), ("public\\.things", 1)):
        step = json.dumps([{"filter": {"tables": [tables], "operations": ["create"]}}])
        assert len(shaped("kafka", batch("cu"), batch_of_change(ALTERED), steps=step)) == count + 2
