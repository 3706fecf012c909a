"""Columns of Arrow as those of PostgreSQL: names that fit, types, and how a column is read.

| Arrow | PostgreSQL |
|---|---|
| bool, int16, int32, int64 | boolean, smallint, integer, bigint |
| float32, float64 | real, double precision |
| decimal(p, s) | numeric(p,s) |
| string, binary | text, bytea |
| date32 | date |
| timestamp(us), the same in UTC | timestamp without time zone, timestamp with time zone |
| string, of a column whose field says so (`Column.sql`) | uuid, json, jsonb, time without time zone |
| lists of the above | arrays of the above |
| structs, maps, lists of lists | json, which keeps the text as it is |
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import pyarrow as pa
from psycopg import sql

from tailrace.model.native import IS_WHOLE, SQL_TYPE, UPPER_UUID
from tailrace.sinks.replica.evolve import sql_name

# NAMEDATALEN - 1: PostgreSQL cuts longer names, and two could become one.
_LONGEST, _DIGITS = 63, 16
_JSON, _TIME = "json", "time"
# By the name that a field has: the type of its column, and the expression of a value's text as the source has it.
_AS_TEXT = "{}::text"
_TEXTS: Mapping[str, tuple[str, str]] = {
    "uuid": ("uuid", _AS_TEXT),
    UPPER_UUID: ("uuid", "upper({}::text)"),
    _JSON: ("json", _AS_TEXT),
    "jsonb": ("jsonb", _AS_TEXT),
    _TIME: ("time without time zone", "to_char({}, 'HH24:MI:SS.US')"),
}
# Every item by itself; an empty array has none.
_TIMES = (
    "coalesce((SELECT array_agg({} ORDER BY place) FROM unnest({{}}) WITH ORDINALITY AS item (item, place)), "
    "{{}}::text[])"
)
_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp without time zone",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
}
_KINDS: Mapping[str, pa.DataType] = {name: kind for kind, name in _NAMES.items()}
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_MAX_DIGITS = 76


def fitted(name: str) -> str:
    """A name as PostgreSQL keeps it whole: one of more than 63 bytes ends in a hash instead."""
    raw = name.encode()
    if len(raw) <= _LONGEST:
        return name
    digits = hashlib.sha256(raw).hexdigest()[:_DIGITS]
    return f"{raw[: _LONGEST - _DIGITS - 1].decode(errors='ignore')}_{digits}"


def identifier(name: str) -> sql.Identifier:
    """A name that fits, quoted: upper and lower case tell names apart."""
    return sql.Identifier(fitted(name))


def stored(schema: pa.Schema) -> pa.Schema:
    """The Arrow types that columns have once PostgreSQL holds them."""
    return pa.schema([_stored(field) for field in schema])


def sql_type(field: pa.Field) -> str:
    """The type of the column of a stored field, as PostgreSQL's format_type writes it."""
    name = sql_name(field)
    if name is None:
        return _sql_type(field.type)
    return _TEXTS[name.removesuffix("[]")][0] + ("[]" if name.endswith("[]") else "")


def as_text(field: pa.Field) -> pa.Field:
    """A stored field whose column takes any text."""
    rest = {name: text for name, text in (field.metadata or {}).items() if name != SQL_TYPE}
    return field.with_metadata(rest)


def has_no_order(field: pa.Field) -> bool:
    """Whether values of a stored field's column cannot be compared."""
    return sql_type(field) in (_JSON, f"{_JSON}[]")


def arrow_type(name: str) -> pa.DataType | None:
    """The Arrow type of a column that another program gave a type, None for one that replicas do not have."""
    if name.endswith("[]"):
        item = arrow_type(name.removesuffix("[]"))
        return None if item is None else pa.list_(item)
    numeric = _NUMERIC.fullmatch(name)
    if numeric is None:
        return _KINDS.get(name)
    digits, scale = int(numeric[1]), int(numeric[2])
    return _decimal(digits, scale) if digits <= _MAX_DIGITS else None


def selected(field: pa.Field) -> sql.Composable:
    """The expression that reads a column: the driver has no Arrow type of numeric, and texts are the source's."""
    name, kind, given = identifier(field.name), field.type, sql_name(field)
    if given == f"{_TIME}[]":
        return sql.SQL(_TIMES.format(_TEXTS[_TIME][1].format("item"))).format(name, name)
    if given is not None and not given.endswith("[]"):
        return sql.SQL(_TEXTS[given][1]).format(name)
    if pa.types.is_decimal(kind):
        return sql.SQL(_AS_TEXT).format(name)
    if given is not None or (pa.types.is_list(kind) and pa.types.is_decimal(kind.value_type)):
        return sql.SQL("{}::text[]").format(name)
    return name


def _stored(field: pa.Field) -> pa.Field:
    kind = _plain(field.type)
    if kind is None and _is_list(field.type):
        item = _plain(field.type.value_type)
        kind = None if item is None else pa.list_(item)
    if kind is not None:
        return field.with_type(kind) if _is_of_texts(kind) else as_text(field.with_type(kind))
    return pa.field(field.name, pa.string(), metadata={**IS_WHOLE, SQL_TYPE: _JSON.encode()})


def _is_of_texts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_list(kind) else kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _plain(kind: pa.DataType) -> pa.DataType | None:
    """What a value that is no list is stored as, None for one that is made of others."""
    is_ = pa.types
    if is_.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if is_.is_integer(kind):
        return _integer(kind)
    if is_.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.string()
    if is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_binary_view(kind) or is_.is_fixed_size_binary(kind):
        return pa.binary()
    return pa.float32() if is_.is_float16(kind) else kind if kind in _NAMES else None


def _integer(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(kind.bit_width, pa.decimal128(20, 0))
    return pa.int16() if kind.bit_width <= 16 else kind


def _decimal(digits: int, scale: int) -> pa.DataType:
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        # Before PostgreSQL 15 the point is within the digits.
        return f"numeric({kind.precision},{kind.scale})" if 0 <= kind.scale <= kind.precision else "numeric"
    return _NAMES[kind]
