"""Encodes schema changes as records of the topic `<topic.prefix>`, in the same form for every database."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.options.topics import INCLUDE_SCHEMA_CHANGES, TOPIC_PREFIX
from tailrace.events.converter import Converter
from tailrace.events.parts import text_of
from tailrace.events.plan import SourcePlan
from tailrace.events.source import SourceWriter, as_json
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.schema import INT64, OPTIONAL_STRING, STRING, ConnectSchema, Field
from tailrace.model.schema_change import DROP, DescribedColumn, SchemaChange
from tailrace.model.source import SourceBlock
from tailrace.model.text.json import dump

_INT32 = ConnectSchema("int32")
_OPTIONAL_INT32 = ConnectSchema("int32", optional=True)
_OPTIONAL_FLAG = ConnectSchema("boolean", optional=True)
_OPTIONAL_NAMES = ConnectSchema("array", optional=True, items=STRING)
_SCHEMA = "io.debezium.connector.schema."

COLUMN = ConnectSchema(
    "struct",
    name=_SCHEMA + "Column",
    version=1,
    fields=(
        Field("name", STRING),
        Field("jdbcType", _INT32),
        Field("nativeType", _OPTIONAL_INT32),
        Field("typeName", STRING),
        Field("typeExpression", OPTIONAL_STRING),
        Field("charsetName", OPTIONAL_STRING),
        Field("length", _OPTIONAL_INT32),
        Field("scale", _OPTIONAL_INT32),
        Field("position", _INT32),
        Field("optional", _OPTIONAL_FLAG),
        Field("autoIncremented", _OPTIONAL_FLAG),
        Field("generated", _OPTIONAL_FLAG),
        Field("comment", OPTIONAL_STRING),
        Field("defaultValueExpression", OPTIONAL_STRING),
        Field("enumValues", _OPTIONAL_NAMES),
    ),
)
TABLE = ConnectSchema(
    "struct",
    optional=True,
    name=_SCHEMA + "Table",
    version=1,
    fields=(
        Field("defaultCharsetName", OPTIONAL_STRING),
        Field("primaryKeyColumnNames", _OPTIONAL_NAMES),
        Field("columns", ConnectSchema("array", items=COLUMN)),
        Field("comment", OPTIONAL_STRING),
    ),
)
CHANGE = ConnectSchema(
    "struct",
    name=_SCHEMA + "Change",
    version=1,
    fields=(Field("type", STRING), Field("id", STRING), Field("table", TABLE)),
)


class SchemaChangeWriter:
    """Makes the records of schema changes for one connector under one configuration.

    Schemas as in Debezium 3.6's SchemaFactory, payloads as recordings of its connectors have them.
    """

    def __init__(self, config: Config, block: SourceBlock) -> None:
        self._topic = config[TOPIC_PREFIX]
        self._is_wanted = config[INCLUDE_SCHEMA_CHANGES]
        self._id_parts = block.change_id
        self._plan = SourcePlan(block, self._topic)
        self._source = SourceWriter(self._plan, Converter.of(config, "value").style)
        name = f"io.debezium.connector.{block.connector}.SchemaChange"
        self._key = ConnectSchema("struct", name=name + "Key", version=1, fields=(Field("databaseName", STRING),))
        self._value = ConnectSchema(
            "struct",
            name=name + "Value",
            version=1,
            fields=(
                Field("source", block.schema),
                Field("ts_ms", INT64),
                Field("databaseName", OPTIONAL_STRING),
                Field("schemaName", OPTIONAL_STRING),
                Field("ddl", OPTIONAL_STRING),
                Field("tableChanges", ConnectSchema("array", items=CHANGE)),
            ),
        )

    def parted(self, batch: ChangeBatch | ControlBatch) -> tuple[ControlBatch | None, ChangeBatch | None]:
        """The records of a batch for a control topic, and its changes of rows.

        A schema change has neither where `include.schema.changes` says so.
        """
        if isinstance(batch, ControlBatch):
            return batch, None
        return (None, batch) if batch.schema_change is None else (self.record(batch), None)

    def record(self, batch: ChangeBatch) -> ControlBatch | None:
        """The record of a batch that is a schema change, for partition 0; None when none is wanted."""
        change, table = batch.schema_change, batch.table.id
        if change is None or not self._is_wanted or not len(batch):
            return None
        database = table.database if change.database is None else change.database
        source = text_of(self._source.parts(batch.rows, as_json(self._plan.texts(table))), 0, 1, str(table))[0].as_py()
        rest = {
            "ts_ms": time.time_ns() // 1_000_000,
            "databaseName": database,
            "schemaName": table.schema,
            "ddl": change.statement,
            "tableChanges": [_payload(change, table.quoted(self._id_parts))],
        }
        row = {
            "key": [dump({"databaseName": database})],
            "value": [f'{{"source":{source},{dump(rest)[1:]}'],
            "partition": pa.array([0], pa.int32()),
        }
        return ControlBatch(self._topic, self._key, self._value, pa.record_batch(row), has_context=True)


def _payload(change: SchemaChange, id_: str) -> dict[str, Any]:
    described = {
        "defaultCharsetName": None,
        "primaryKeyColumnNames": list(change.key),
        "columns": [_column(column) for column in change.columns],
        "comment": change.comment,
    }
    return {
        "type": change.kind,
        "id": id_,
        "table": None if change.kind == DROP else described,
    }


def _column(column: DescribedColumn) -> dict[str, Any]:
    """The payload of a column, in the order of its schema's fields."""
    return {
        "name": column.name,
        "jdbcType": column.jdbc_type,
        "nativeType": column.native_type,
        "typeName": column.type_name,
        "typeExpression": column.type_expression,
        "charsetName": column.charset,
        "length": column.length,
        "scale": column.scale,
        "position": column.position,
        "optional": column.optional,
        "autoIncremented": column.auto_incremented,
        "generated": column.generated,
        "comment": column.comment,
        "defaultValueExpression": column.default,
        "enumValues": None if column.enum_values is None else list(column.enum_values),
    }
