"""Converts fields of documents to typed Arrow columns.

A value is converted where its declared type holds it exactly: an int64 in a column of doubles must be a number that a
double has. Nothing is rounded, cut or dropped: what does not fit stays out of the column, and the caller keeps it in
another place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from tailrace.connectors.mongodb.types import layout
from tailrace.connectors.mongodb.types.decimals import decimal_column, decimal_text
from tailrace.connectors.mongodb.types.json import RELAXED, json_text
from tailrace.connectors.mongodb.types.layout import Flags, Ints, Values
from tailrace.connectors.mongodb.types.names import Names
from tailrace.connectors.mongodb.types.scalars import binary_column, object_id_text
from tailrace.connectors.mongodb.types.strings import string_column
from tailrace.connectors.mongodb.types.walk import members
from tailrace.errors import ConfigError
from tailrace.model import odd_times
from tailrace.model.arrow import indices, mask
from tailrace.model.odd_times import FIRST_DAY, LAST_DAY

# A part of a column: the rows that it has values for, and these. What is not among the rows did not fit.
Part = tuple[Ints, pa.Array]
Reader = Callable[[Values, Ints, pa.DataType], Part]
_EXACT = 2.0**63
_DAY_MS = 86_400_000  # of Arrow's dates


def typed_column(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
    """The values as that type, null where there is none; and which rows have a value that it does not hold.

    Raises ConfigError for a type that no BSON value has.
    """
    column, fits = _column(values, kind, _readers(kind))
    return column, ~fits


def lost(kind: pa.DataType) -> str:
    """What a column of the type does not keep of a field: fields that differ in that alone have one value there."""
    return " and ".join((*_lost(kind), "the difference between null and a missing field"))


def _lost(kind: pa.DataType) -> tuple[str, ...]:
    if pt.is_struct(kind):
        return tuple(dict.fromkeys(("the order of fields", *(each for field in kind for each in _lost(field.type)))))
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _lost(kind.value_type)
    return next((what_is_lost for test, what_is_lost in _LOST if test(kind)), ())


def takes_text(kind: pa.DataType) -> bool:
    """Whether a column of the type may be one of `text_column` instead."""
    return _is_text(kind) or _is_time(kind) or bool(pt.is_decimal(kind))


def text_column(values: Values) -> tuple[pa.Array, Flags]:
    """The same as strings, which hold every date, in ISO 8601, and every number without a binary fraction as well."""
    column, fits = _column(values, pa.string(), {**_readers(pa.string()), **_PRINTERS})
    return column, ~fits


def _column(values: Values, kind: pa.DataType, readers: Mapping[int, Reader]) -> tuple[pa.Array, Flags]:
    """The column, and which rows are in it: those with a value that fits, with null, or without a value."""
    fits = (values.kinds == layout.ABSENT) | (values.kinds == layout.NULL)
    parts: list[Part] = []
    for bson, reader in readers.items():
        rows = np.flatnonzero(values.kinds == bson)
        if rows.size:
            part = reader(values.take(rows), rows, kind)
            parts.append(part)
            fits[part[0]] = True
    return _merged(parts, len(values), kind), fits


def _merged(parts: list[Part], count: int, kind: pa.DataType) -> pa.Array:
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    places, is_given = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    first = 0
    for rows, values in parts:
        places[rows] = first + np.arange(len(rows))
        is_given[rows] = True
        first += len(values)
    if not parts:
        return pa.nulls(count, kind)
    return pa.concat_arrays([values for _, values in parts]).take(indices(places, ~is_given))


def _readers(kind: pa.DataType) -> dict[int, Reader]:
    """For each kind of BSON value that the type can hold, what reads it."""
    for test, readers in _READERS:
        if test(kind):
            return readers
    raise ConfigError(
        f"no BSON value has the type {kind}",
        remedy="declare string, integer, double, boolean, timestamp, date, binary or decimal, a struct, or an array",
    )


def _where(rows: Ints, fits: Flags, values: pa.Array) -> Part:
    return (rows, values) if fits.all() else (rows[fits], values.filter(mask(fits)))


def _integers(numbers: Ints, rows: Ints, kind: pa.DataType) -> Part:
    """Numbers of 64 bits as an integer type, where it has them."""
    limits = np.iinfo(kind.to_pandas_dtype())
    fits = (numbers >= max(limits.min, -(2**63))) & (numbers <= min(limits.max, 2**63 - 1))
    return _where(rows, fits, pc.cast(pa.array(numbers, pa.int64()), kind, safe=False))


def _int32(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    return _integers(values.buffer.int32[values.starts].astype(np.int64), rows, kind)


def _int64(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    return _integers(values.buffer.int64[values.starts], rows, kind)


def _whole_double(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    """Doubles without a fraction, as older shells write integers."""
    numbers = values.buffer.float64[values.starts]
    whole = (np.abs(numbers) < _EXACT) & (numbers == np.floor(numbers)) & ~((numbers == 0) & np.signbit(numbers))
    return _integers(numbers[whole].astype(np.int64), rows[whole], kind)


def _double(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    numbers = values.buffer.float64[values.starts]
    column = pc.cast(pa.array(numbers), kind)
    same = column.to_numpy().astype(np.float64)
    return _where(rows, (same == numbers) | np.isnan(numbers), column)


def _integer_as_double(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    is_int = values.kinds == layout.INT32
    numbers = np.where(is_int, values.buffer.int32[values.starts], values.buffer.int64[values.starts])
    column = pa.array(numbers.astype(np.float32 if pt.is_float32(kind) else np.float64), kind)
    near = column.to_numpy().astype(np.float64)
    fits = (near < _EXACT) & (np.where(near < _EXACT, near, 0).astype(np.int64) == numbers)
    return _where(rows, fits, column)


def _boolean(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    flags = values.buffer.uint8[values.starts]
    return _where(rows, flags <= 1, mask(flags == 1))


def _string(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    return rows, string_column(values.buffer, values.starts).cast(kind)


def _object_id(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    return rows, object_id_text(values.buffer, values.starts).cast(kind)


def _json(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    return rows, json_text(values, RELAXED).cast(kind)


def _binary(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    return rows, binary_column(values.buffer, values.starts).cast(kind)


def _date(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    """Milliseconds since 1970 as a timestamp, or as a date where they are a whole day; of the years 1 to 9999."""
    times = values.buffer.int64[values.starts]
    held = (times >= FIRST_DAY * _DAY_MS) & (times < (LAST_DAY + 1) * _DAY_MS)
    factor = {"s": (1, 1000), "ms": (1, 1), "us": (1000, 1), "ns": (1000000, 1), "day": (1, 86400000)}
    times_by, divided_by = factor["day" if pt.is_date(kind) else kind.unit]
    fits = held & (times % divided_by == 0) & (np.abs(times.astype(np.float64)) * times_by < _EXACT)
    numbers = np.where(fits, times, 0) // divided_by * times_by
    if pt.is_date64(kind):
        numbers = numbers * divided_by
    storage = pa.int32() if pt.is_date32(kind) else pa.int64()
    fits &= (np.abs(numbers) < 2**31) | (storage != pa.int32())
    return _where(rows, fits, pc.cast(pa.array(np.where(fits, numbers, 0)), storage).view(kind))


def _decimal(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    fits, column = decimal_column(values.buffer, values.starts, kind)
    return rows[fits], column


def _integer_as_decimal(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    is_int = values.kinds == layout.INT32
    numbers = np.where(is_int, values.buffer.int32[values.starts], values.buffer.int64[values.starts])
    digits = kind.precision - kind.scale
    fits = np.abs(numbers.astype(np.float64)) < 10.0**digits if digits < 19 else np.ones(len(numbers), np.bool_)
    whole = pc.cast(pa.array(numbers[fits]), pa.decimal128(19, 0))
    return rows[fits], pc.cast(whole, kind)


def _printed_date(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    text = odd_times.timestamps(pa.array(values.buffer.int64[values.starts]), "ms")
    return rows, pc.binary_join_element_wise(text, "Z", "")


def _printed_decimal(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    return rows, decimal_text(values.buffer, values.starts)


def _printed_integer(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    is_int = values.kinds == layout.INT32
    numbers = np.where(is_int, values.buffer.int32[values.starts], values.buffer.int64[values.starts])
    return rows, pc.cast(pa.array(numbers), kind)


def _struct(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    """A document with exactly the fields of the struct, where each value fits."""
    elements = members(values)
    names = Names([field.name for field in kind])
    is_named = names.find(values.buffer, elements) >= 0
    fits = np.ones(len(values), np.bool_)
    fits[elements.rows[~is_named]] = False
    columns = []
    for column, field in zip(names.columns(values, elements), kind, strict=True):
        converted, fitting = _column(column, field.type, _readers(field.type))
        columns.append(converted)
        fits &= fitting
    return _where(rows, fits, pa.StructArray.from_arrays(columns, fields=list(kind)))


def _list(values: Values, rows: Ints, kind: pa.DataType) -> Part:
    """An array whose items all fit."""
    item_values = members(values)
    of = kind.value_type
    items, fitting = _column(Values(values.buffer, item_values.kinds, item_values.starts), of, _readers(of))
    fits = np.ones(len(values), np.bool_)
    fits[item_values.rows[~fitting]] = False
    cls = pa.LargeListArray if pt.is_large_list(kind) else pa.ListArray
    offsets = pa.array(item_values.firsts, pa.int64() if pt.is_large_list(kind) else pa.int32())
    return _where(rows, fits, cls.from_arrays(offsets, items).cast(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) or pt.is_date(kind))


_READERS: tuple[tuple[Callable[[pa.DataType], bool], dict[int, Reader]], ...] = (
    (
        _is_text,
        {layout.STRING: _string, layout.OBJECT_ID: _object_id, layout.DOCUMENT: _json, layout.ARRAY: _json},
    ),
    (pt.is_boolean, {layout.BOOLEAN: _boolean}),
    (pt.is_integer, {layout.INT32: _int32, layout.INT64: _int64, layout.DOUBLE: _whole_double}),
    (
        pt.is_floating,
        {layout.DOUBLE: _double, layout.INT32: _integer_as_double, layout.INT64: _integer_as_double},
    ),
    (_is_time, {layout.DATE: _date}),
    (_is_bytes, {layout.BINARY: _binary}),
    (
        pt.is_decimal,
        {layout.DECIMAL128: _decimal, layout.INT32: _integer_as_decimal, layout.INT64: _integer_as_decimal},
    ),
    (pt.is_struct, {layout.DOCUMENT: _struct}),
    (lambda kind: pt.is_list(kind) or pt.is_large_list(kind), {layout.ARRAY: _list}),
)
_LOST: tuple[tuple[Callable[[pa.DataType], bool], tuple[str, ...]], ...] = (
    (_is_text, ("the type of what is no string",)),
    (lambda kind: pt.is_integer(kind) or pt.is_floating(kind), ("the types of numbers",)),
    (pt.is_decimal, ("the types of numbers", "zeros at the end of decimals")),
    (_is_bytes, ("the subtypes of binary data",)),
)
_PRINTERS: dict[int, Reader] = {
    layout.DATE: _printed_date,
    layout.DECIMAL128: _printed_decimal,
    layout.INT32: _printed_integer,
    layout.INT64: _printed_integer,
}
