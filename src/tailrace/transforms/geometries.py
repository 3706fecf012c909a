"""Changes the well-known binary form of the geometries in values, for transforms of io.debezium.data.geometry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.schema import ConnectSchema
from tailrace.transforms.fields import with_default
from tailrace.transforms.transform import require

# Geography and Point have names of their own, and stay as they are.
_GEOMETRY = "io.debezium.data.geometry.Geometry"
# Bits of the type in the extended form (EWKB).
HAS_Z, HAS_M, HAS_SRID = 0x80000000, 0x40000000, 0x20000000


@dataclass(frozen=True)
class Geometries:
    """Replaces `wkb` of each geometry by `convert` of the columns `wkb` and `srid`, however deep in structs.

    With `in_lists` also in arrays and in the values of maps. As in the reference the records stay the same ones: no
    header is copied, and null fields with a default have it from then on.
    """

    convert: Callable[[pa.Array, pa.Array], pa.Array]
    where: str
    in_lists: bool = False

    def apply(self, records: Records) -> list[Records]:
        """The records with their geometries converted; tombstones, and values that are no structs, as they are."""
        events, nulls = records.with_value()
        value = events.value
        if not len(events) or value is None or value.column is None or value.schema.type != "struct":
            return [records]
        return [events.with_(value=self._struct(value), shares_headers=events.shares_headers), nulls]

    def _struct(self, part: RecordPart) -> RecordPart:
        fields = [(name, self._field(with_default(field))) for name, field in part.fields()]
        absent = part.values.is_null()
        return struct(part.schema, fields, len(part.values), absent if absent.true_count else None)

    def _field(self, part: RecordPart) -> RecordPart:
        schema = part.schema
        if schema.type == "struct":
            return self._geometry(part) if schema.name == _GEOMETRY else self._struct(part)
        if self.in_lists and _holds_geometries(schema):
            return self._map(part) if schema.type == "map" else self._list(part)
        return part

    def _geometry(self, part: RecordPart) -> RecordPart:
        wkb, srid = (require(part, name, self.where).values for name in ("wkb", "srid"))
        made = self.convert(wkb, srid)
        fields = [(name, RecordPart(field.schema, made) if name == "wkb" else field) for name, field in part.fields()]
        absent = part.values.is_null()
        return struct(part.schema, fields, len(part.values), absent if absent.true_count else None)

    def _list(self, part: RecordPart) -> RecordPart:
        assert part.schema.items is not None
        items = self._field(RecordPart(part.schema.items, part.values.flatten())).values
        lists = pa.ListArray.from_arrays(_offsets(part.values), items, mask=part.values.is_null())
        return RecordPart(part.schema, lists)

    def _map(self, part: RecordPart) -> RecordPart:
        assert part.schema.values is not None
        entry = pa.struct([pa.field("key", part.values.type.key_type, False), ("value", part.values.type.item_type)])
        lists = part.values.cast(pa.list_(entry))
        keys, values = lists.flatten().flatten()
        made = self._field(RecordPart(part.schema.values, values)).values
        return RecordPart(part.schema, pa.MapArray.from_arrays(_offsets(lists), keys, made, mask=lists.is_null()))


def _offsets(lists: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _holds_geometries(schema: ConnectSchema) -> bool:
    inner = (*(field.schema for field in schema.fields), schema.items, schema.values)
    return schema.name == _GEOMETRY or any(each is not None and _holds_geometries(each) for each in inner)
