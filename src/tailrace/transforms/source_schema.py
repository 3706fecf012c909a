"""ExtractSchemaToNewRecord: adds the table's columns, as the source has them, as a field of each event."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.topics import adjusted
from tailrace.errors import TransformError
from tailrace.events.payload import arrow_type
from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.arrow import flags
from tailrace.model.schema import OPTIONAL_STRING, STRING, ConnectSchema, Field
from tailrace.transforms.settings import Given, either, setting
from tailrace.transforms.transform import require

OPTIONS = (
    _SCHEMA_NAME_ADJUSTMENT_MODE := setting(
        "schema.name.adjustment.mode", either("none", "avro", "avro_unicode"), "none"
    ),
)
_NAME = "io.debezium.connector.source."
_PARAMETER = "__debezium.source.column."
_INT32 = ConnectSchema("int32", optional=True)


@dataclass(frozen=True)
class ExtractSchemaToNewRecord:
    """Adds `sourceSchema` to change events that have a row, from what `column.propagate.source.type` left there."""

    adjustment: str

    @staticmethod
    def of(given: Given) -> ExtractSchemaToNewRecord:
        """From the transform's settings. Raises SettingsError."""
        return ExtractSchemaToNewRecord(given.read(OPTIONS)[_SCHEMA_NAME_ADJUSTMENT_MODE])

    def apply(self, records: Records) -> list[Records]:
        """Change events with the field; tombstones, truncates and others as they are."""
        if records.value is None or not records.value.is_envelope:
            return [records]
        images = [require(records.value, name, "ExtractSchemaToNewRecord").values for name in ("before", "after")]
        events, others = records.split(flags(images[0].is_valid()) | flags(images[1].is_valid()))
        return [*([self._with_schema(events)] if len(events) else []), others]

    def _with_schema(self, records: Records) -> Records:
        assert records.value is not None
        envelope, count = records.value, len(records)
        tables = require(envelope.field("source"), "table", "ExtractSchemaToNewRecord").values
        columns = [_column(field) for field in envelope.field("after").schema.fields]
        schema = self._schema()
        codes = tables.dictionary_encode()
        blocks = [{"id": table, "table": {"columns": columns}} for table in codes.dictionary.to_pylist()]
        values = pa.array(blocks, arrow_type(schema)).take(pc.cast(codes.indices, pa.int64()))
        fields = [(name, part) for name, part in envelope.fields() if name != "sourceSchema"]
        fields.append(("sourceSchema", RecordPart(schema, values)))
        return records.with_(value=struct(envelope.schema, fields, count))

    def _schema(self) -> ConnectSchema:
        column = _struct(
            adjusted(_NAME + "schema.Column", self.adjustment, dots=True),
            Field("name", STRING),
            Field("typeName", STRING),
            Field("length", _INT32),
            Field("scale", _INT32),
            Field("comment", OPTIONAL_STRING),
        )
        table = _struct(_NAME + "schema.Table", Field("columns", ConnectSchema("array", items=column)))
        name = adjusted(_NAME + "Schema", self.adjustment, dots=True)
        return _struct(name, Field("id", STRING), Field("table", table))


def _struct(name: str, *fields: Field) -> ConnectSchema:
    return ConnectSchema("struct", name=name, version=1, fields=fields)


def _column(field: Field) -> dict[str, object]:
    parameters = dict(field.schema.parameters)
    name, kind = parameters.get(_PARAMETER + "name"), parameters.get(_PARAMETER + "type")
    if name is None or kind is None:
        raise TransformError(
            f"column {field.name!r} does not declare its type",
            where="ExtractSchemaToNewRecord",
            remedy="Set column.propagate.source.type or datatype.propagate.source.type to .*",
        )
    length, scale = parameters.get(_PARAMETER + "length"), parameters.get(_PARAMETER + "scale")
    return {
        "name": name,
        "typeName": kind,
        "length": None if length is None else int(length),
        "scale": None if scale is None else int(scale),
        "comment": parameters.get(_PARAMETER + "comment"),
    }
