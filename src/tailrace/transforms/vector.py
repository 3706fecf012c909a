"""VectorToJsonConverter: converts vectors to JSON text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.numbers import java_float
from tailrace.transforms.fields import with_default
from tailrace.transforms.settings import Given

_JSON = "io.debezium.data.Json"


@dataclass(frozen=True)
class VectorToJson:
    """Converts the vectors of a value, however deep in structs. Works value by value on vectors, on columns else."""

    @staticmethod
    def of(given: Given) -> VectorToJson:
        """It has no settings. Raises SettingsError."""
        given.read(())
        return VectorToJson()

    def apply(self, records: Records) -> list[Records]:
        """The records with their values converted; tombstones as they are."""
        events, nulls = records.with_value()
        if not len(events) or events.value is None or events.value.schema.type != "struct":
            return [records]
        return [events.with_(value=_converted(events.value)), nulls]


def _converted(part: RecordPart) -> RecordPart:
    if not _holds_vectors(part.schema):
        return part
    absent = part.values.is_null()
    fields = [(name, _field(with_default(field))) for name, field in part.fields()]
    schema = part.schema.with_(default=None)
    return struct(schema, fields, len(part.values), absent if absent.true_count else None)


def _field(part: RecordPart) -> RecordPart:
    write = _WRITERS.get(part.schema.name or "")
    if write is None:
        return _converted(part) if part.schema.type == "struct" else part
    texts = [None if value is None else write(value) for value in part.values.to_pylist()]
    schema = ConnectSchema("string", part.schema.optional, _JSON, 1)
    return RecordPart(schema, pa.array(texts, pa.string()))


def _holds_vectors(schema: ConnectSchema) -> bool:
    return any(field.schema.name in _WRITERS or _holds_vectors(field.schema) for field in schema.fields)


def _dense(value: Any) -> str:
    return '{ "values": [' + ", ".join(java_float(item) for item in value) + "] }"


def _dense_float(value: Any) -> str:
    return _dense(np.array(value, np.float32))


def _sparse(value: Any) -> str:
    pairs = ", ".join(f'"{place}": {java_float(item)}' for place, item in sorted(dict(value["vector"]).items()))
    return f'{{ "dimensions": {value["dimensions"]}, "vector": {{ {pairs} }} }}'


_WRITERS: dict[str, Callable[[Any], str]] = {
    "io.debezium.data.DoubleVector": _dense,
    "io.debezium.data.FloatVector": _dense_float,
    "io.debezium.data.SparseDoubleVector": _sparse,
}
