"""Rows of a shape: steps have the same effect on every shape that has topics."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from tailrace.capture.capture import Capture
from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.connector import PostgresConnector
from tailrace.connectors.postgres.position import SOURCE_TYPE
from tailrace.model.change import CREATE, DELETE, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.spark.shapes import Shaper

TABLE = TableSchema(
    TableId("shop", "public", "orders"), (Column("id", ConnectSchema("int32"), pa.int32()),), ("id",), ("id",)
)


def inserted() -> ChangeBatch:
    """One row."""
    columns = {
        "op": pa.array([CREATE]),
        "order": pa.array([0], pa.int64()),
        "ts_us": pa.array([0], pa.int64()),
        "snapshot": pa.nulls(1, pa.string()),
        "source": pa.array([{"txId": 1, "lsn": 2}], SOURCE_TYPE),
        "before": pa.nulls(1, TABLE.row_type),
        "after": pa.array([{"id": 7}], TABLE.row_type),
    }
    return ChangeBatch(TABLE, pa.RecordBatch.from_pydict(columns))


def deleted() -> ChangeBatch:
    """The same row's end."""
    columns = dict(zip(inserted().rows.schema.names, inserted().rows.columns, strict=True))
    columns |= {"op": pa.array([DELETE]), "before": columns["after"], "after": columns["before"]}
    return ChangeBatch(TABLE, pa.RecordBatch.from_pydict(columns))


def shaper(shape: str, steps: str = "[]") -> Shaper:
    """For a pipeline of PostgreSQL."""
    config = resolve(
        {
            "database.hostname": "localhost",
            "database.user": "cdc",
            "database.dbname": "shop",
            "topic.prefix": "shop",
            "shape": shape,
        }
    )
    return Shaper(Capture(PostgresConnector(config)), StructType(), steps, "run")


@pytest.mark.parametrize("shape", ["kafka", "event"])
def test_a_route_renames_the_topics_of_every_shape_that_has_them(shape: str) -> None:
    steps = json.dumps([{"route": {"regex": r"shop\.public\.(.*)", "replacement": "renamed.$1"}}])
    (rows,) = shaper(shape, steps).rows(Chunk([inserted()]))
    assert rows.column("topic").to_pylist() == ["renamed.orders"]


def test_the_shape_count_has_the_number_of_encoded_records() -> None:
    (rows,) = shaper("count").rows(Chunk([deleted()]))
    assert rows.to_pylist() == [{"records": 2}]  # with the tombstone
