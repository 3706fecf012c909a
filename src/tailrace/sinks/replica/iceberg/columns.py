"""Columns of Arrow as those of Iceberg, by field ids: a column that is renamed or widened keeps its id.

Iceberg promotes int to long, float to double and decimals to more digits. Any other type makes another column of the
same name, whose values are written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from tailrace.model.native import IS_WHOLE
from tailrace.sinks.replica.table import LakeError

_PLAIN: Mapping[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", "UTC"),
    StringType: pa.string(),
    BinaryType: pa.binary(),
}
_WIDE = {(IntegerType, LongType), (FloatType, DoubleType)}
# A field's metadata, which Iceberg has no place for, in its documentation.
_DOC = "tailrace: "


def arrow(schema: Schema) -> pa.Schema:
    """The Arrow fields of Iceberg's, all nullable."""
    return pa.schema([_field(field) for field in schema.fields])


def stored(schema: pa.Schema) -> pa.Schema:
    """The Arrow types that columns have once Iceberg holds them. Raises LakeError."""
    return arrow(fitted(schema, None, 0))


def fitted(schema: pa.Schema, current: Schema | None, last_id: int) -> Schema:
    """A schema of these columns; those that a known one has keep their ids, and new ones get ids after `last_id`.

    Raises LakeError for a type that Iceberg does not have.
    """
    ids = count(last_id + 1)
    fields = {} if current is None else {field.name: field for field in current.fields}
    return Schema(*(_kept(field, fields.get(field.name), ids) for field in schema))


def promotes(schema: pa.Schema, current: Schema) -> bool:
    """Whether the columns of a schema can have their types without writing a row again."""
    fields = {field.name: field for field in current.fields}
    return all(field.name in fields and _goes(fields[field.name].field_type, field.type) for field in schema)


def reshaped(current: Schema, names: Sequence[str], new_names: Sequence[str]) -> Schema:
    """The columns of these names alone, under new ones."""
    fields = {field.name: field for field in current.fields}
    pairs = zip(names, new_names, strict=True)
    return Schema(*(fields[old].model_copy(update={"name": new}) for old, new in pairs))


def _kept(field: pa.Field, current: NestedField | None, ids: Iterator[int]) -> NestedField:
    doc = _doc(field)
    if current is not None and _goes(current.field_type, field.type):
        kind = current.field_type
        if not kind.is_struct and isinstance(kind, IntegerType | FloatType | DecimalType):
            kind = _type(field.type, ids)
        return NestedField(current.field_id, field.name, kind, required=False, doc=doc)
    return NestedField(next(ids), field.name, _type(field.type, ids), required=False, doc=doc)


def _goes(current: IcebergType, wanted: pa.DataType) -> bool:
    """Whether a column of one type may have another one without rewriting its values."""
    if isinstance(current, DecimalType) and pa.types.is_decimal(wanted):
        return bool(current.scale == wanted.scale and current.precision <= wanted.precision)
    if arrow_type(current) == arrow_type(_type(wanted, count())):
        return True
    return (type(current), type(_type(wanted, count()))) in _WIDE


def _doc(field: pa.Field) -> str | None:
    metadata = field.metadata or {}
    names = [f"{name.decode()}={metadata[name].decode()}" for name in IS_WHOLE if name in metadata]
    return _DOC + ",".join(names) if names else None


def _field(field: NestedField) -> pa.Field:
    metadata = None
    if field.doc is not None and field.doc.startswith(_DOC):
        metadata = dict(each.split("=", 1) for each in field.doc.removeprefix(_DOC).split(","))
    return pa.field(field.name, arrow_type(field.field_type), metadata=metadata)


def arrow_type(kind: IcebergType) -> pa.DataType:
    """The Arrow type of one of Iceberg's. Raises LakeError for one that replicas do not write."""
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)]
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, ListType):
        return pa.list_(arrow_type(kind.element_type))
    if isinstance(kind, MapType):
        return pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type))
    if isinstance(kind, StructType):
        return pa.struct([pa.field(each.name, arrow_type(each.field_type)) for each in kind.fields])
    raise LakeError(f"the table has a column of Iceberg's type {kind}, which no replica has")


def named_as(values: pa.ChunkedArray, like: pa.DataType) -> pa.ChunkedArray:
    """Values whose structs have the names of another type, in its order: a cast goes by names, and drops the others."""
    kind = _with_names(values.type, like)
    if kind == values.type:
        return values
    return pa.chunked_array([chunk.view(kind) for chunk in values.chunks], kind)


def _with_names(kind: pa.DataType, like: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        pairs = zip(kind, like, strict=True)
        return pa.struct([pa.field(its.name, _with_names(mine.type, its.type)) for mine, its in pairs])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _with_names(kind.item_type, like.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_with_names(kind.value_type, like.value_type))
    return kind


def _type(kind: pa.DataType, ids: Iterator[int]) -> IcebergType:
    """Iceberg's type of one of Arrow's, with ids for what is within it."""
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ListType(next(ids), _type(kind.value_type, ids), element_required=False)
    if pa.types.is_map(kind):
        key, value = next(ids), next(ids)
        return MapType(key, _type(kind.key_type, ids), value, _type(kind.item_type, ids), value_required=False)
    if pa.types.is_struct(kind):
        return StructType(*(NestedField(next(ids), each.name, _type(each.type, ids), required=False) for each in kind))
    plain_type = next((plain for is_kind, plain in _KINDS if is_kind(kind)), None)
    if plain_type is None:
        raise LakeError(f"Iceberg has no type for {kind}")
    return plain_type()


def _is_int(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) and (kind.bit_width < 32 or pa.types.is_int32(kind)))


_KINDS = (
    (pa.types.is_boolean, BooleanType),
    (_is_int, IntegerType),
    (lambda kind: pa.types.is_int64(kind) or pa.types.is_uint32(kind), LongType),
    (lambda kind: pa.types.is_float32(kind) or pa.types.is_float16(kind), FloatType),
    (pa.types.is_float64, DoubleType),
    (pa.types.is_date, DateType),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, TimestampType),
    (pa.types.is_timestamp, TimestamptzType),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind), StringType),
    (lambda kind: pa.types.is_string_view(kind), StringType),
    (
        lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
        BinaryType,
    ),
)
