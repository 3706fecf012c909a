"""The columns of each row shape (option `shape`), which Spark asks for before anything is read."""

from __future__ import annotations

import logging

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.capture.capture import Capture
from tailrace.config.options.events import TRANSFORM_NAMES
from tailrace.config.options.spark import SHAPE
from tailrace.errors import ConfigError
from tailrace.events.forms import record_schema
from tailrace.model.native import native_type
from tailrace.model.table import TableSchema
from tailrace.spark.observed import COUNTS, COUNTS_TYPE
from tailrace.spark.versions import to_arrow_schema

ARROW_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("sequence", pa.int64()),
        ("count", pa.int32()),
        ("bytes", pa.binary()),
        ("split", pa.string()),
        (COUNTS, COUNTS_TYPE),
    ]
)

COUNT_SCHEMA = pa.schema([("records", pa.int64())])

_LOG = logging.getLogger(__name__)


def spark_schema(capture: Capture) -> StructType:
    """The columns of the shape that the config names."""
    shape = capture.config[SHAPE]
    if shape in ("event", "table") and capture.config[TRANSFORM_NAMES]:
        _LOG.warning("transforms: no effect on the shape %s, which holds changes; they work on records", shape)
    if shape == "arrow":
        return from_arrow_schema(ARROW_SCHEMA)
    if shape == "count":
        return from_arrow_schema(COUNT_SCHEMA)
    if shape == "kafka":
        return from_arrow_schema(record_schema(capture.config, capture.source))
    if shape == "event":
        from tailrace.events.shapes import event_schema

        return from_arrow_schema(event_schema(capture.source))
    return from_arrow_schema(table_schema(capture))


def table_schema(capture: Capture) -> pa.Schema:
    """Columns of the `table` shape: op, before, after in native types, source, position. Raises ConfigError."""
    tables = capture.discover()
    if len(tables) != 1:
        raise ConfigError(
            f"shape=table takes exactly one captured table, the filters let {len(tables)} through",
            where="table.include.list",
            remedy="name one table in table.include.list, or use shape=event",
        )
    row = native_struct(tables[0])
    return pa.schema(
        [
            ("op", pa.string()),
            ("before", row),
            ("after", row),
            ("source", capture.source_type),
            ("ts", pa.timestamp("us", "UTC")),
        ]
    )


def row_type(schema: StructType) -> pa.StructType:
    """The type of the images in the `table` shape."""
    return to_arrow_schema(schema).field("after").type


def native_struct(table: TableSchema) -> pa.StructType:
    """A table's row in native Arrow types."""
    return pa.struct([pa.field(column.name, native_type(column)) for column in table.columns])
