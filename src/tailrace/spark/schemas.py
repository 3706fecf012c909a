"""The columns of each row shape (option `shape`), which Spark asks for before anything is read."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.config import Config
from tailrace.config.options.events import TRANSFORM_NAMES
from tailrace.config.options.spark import SHAPE
from tailrace.errors import ConfigError
from tailrace.spark.observed import COUNTS, COUNTS_TYPE
from tailrace.spark.versions import to_arrow_schema

if TYPE_CHECKING:
    from tailrace.capture.capture import Capture
    from tailrace.model.table import TableSchema

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


def fixed_schema(config: Config) -> StructType | None:
    """The columns of a shape that are the same for every connector, None for another shape."""
    fixed = {"arrow": ARROW_SCHEMA, "count": COUNT_SCHEMA}.get(config[SHAPE])
    return None if fixed is None else from_arrow_schema(fixed)


def spark_schema(capture: Capture) -> StructType:
    """The columns of the shape that the config names."""
    fixed, shape = fixed_schema(capture.config), capture.config[SHAPE]
    if fixed is not None:
        return fixed
    if shape in ("event", "table") and capture.config[TRANSFORM_NAMES]:
        _LOG.warning("transforms: no effect on the shape %s, which holds changes; they work on records", shape)
    if shape == "kafka":
        from tailrace.events.forms import record_schema

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
    from tailrace.model.native import native_type

    return pa.struct([pa.field(column.name, native_type(column)) for column in table.columns])
