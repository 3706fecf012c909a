"""Converts row images from Connect's numbers and texts to native Arrow types, such as dates and timestamps.

| Connect schema | native type |
|---|---|
| `io.debezium.time.Date`, Connect `Date` | date32 |
| `Timestamp`, `MicroTimestamp`, `NanoTimestamp`, Connect `Timestamp` | timestamp(us), no zone |
| `ZonedTimestamp` | timestamp(us, UTC) |
| `Time`, `MicroTime`, `NanoTime`, Connect `Time` | string `HH:MM:SS.ffffff`, as lakehouse formats have no time of day |
| decimals of more than 38 digits or with the point outside of them, `VariableScaleDecimal` | string, plain notation |
| arrays | arrays of the above |
| those of held.py, whose type cannot hold all values | that of the values, or string where there are others |
| everything else | as it is |

A time finer than a microsecond is cut. An infinity, or a year outside 1 to 9999, has no counterpart in a lakehouse
table. By the column's `out_of_range` it is a DecodeError, or null, or the column is text: ISO 8601, with years before 0
and beyond 9999 signed (`-0043-03-15` is in the year 44 BC), `infinity` and `-infinity`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DecodeError
from tailrace.model import odd_times
from tailrace.model.held import held, held_type, is_held, plain, text_of, texts, value_of, with_point
from tailrace.model.odd_times import DAY_US, FIRST_DAY, LAST_DAY
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import ERROR, NULL, TEXT, Column, TableSchema

_DEBEZIUM, _CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
_DAYS = {_DEBEZIUM + "Date", _CONNECT + "Date"}
# Units of a microsecond: (multiply, divide).
_TIMES = {
    _DEBEZIUM + "Time": (1000, 1),
    _CONNECT + "Time": (1000, 1),
    _DEBEZIUM + "MicroTime": (1, 1),
    _DEBEZIUM + "NanoTime": (1, 1000),
}
_UNITS = {"ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
_TIMESTAMPS: dict[str | None, odd_times.Unit] = {
    _DEBEZIUM + "Timestamp": "ms",
    _CONNECT + "Timestamp": "ms",
    _DEBEZIUM + "MicroTimestamp": "us",
    _DEBEZIUM + "NanoTimestamp": "ns",
}
_FOUR_DIGITS = "^(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
_ZONED = _DEBEZIUM + "ZonedTimestamp"
_DECIMAL = _CONNECT + "Decimal"
_VARIABLE = "io.debezium.data.VariableScaleDecimal"

# For columns whose type cannot hold all values (held.py): texts of all, or both the values and the texts of others.
WHOLE, HELD = "whole", "held"
# Of the field of a column of texts that had another type: it takes all values of the source's.
IS_WHOLE = {b"tailrace.held": b"true"}

# Of the field of a column of texts: the name of the type that its values have in a database, such as `uuid`.
SQL_TYPE = b"tailrace.sql"
UPPER_UUID = "UUID"
"""As `uuid`, in capital letters."""
_SQL_TYPES = {"io.debezium.data.Uuid": "uuid", "io.debezium.data.Json": "json", **dict.fromkeys(_TIMES, "time")}
# Parameters of the schema of a column whose values are not the source's.
_MASKS = {"masked", "truncateLength"}

_MIDNIGHT_AFTER = "24:00:00.000000"
_MAX_DIGITS = 38
_WIDE = pa.decimal256(76, 0)
# More digits than any database's decimals have: at most 131,072 before the point and 16,383 behind it.
_EXACT = Context(prec=150_000)


def native_type(column: Column) -> pa.DataType:
    """The native type of a column."""
    if is_held(column.arrow) and column.others == WHOLE:
        return pa.string()
    kind = _type(column.schema, column.arrow, as_text=column.out_of_range == TEXT)
    return held_type(kind) if is_held(column.arrow) and column.others == HELD else kind


def native_schema(table: TableSchema) -> pa.Schema:
    """The native types of a table's columns, all nullable: a deleted row's image holds its identity only."""
    return pa.schema([pa.field(each.name, native_type(each), metadata=_metadata(each)) for each in table.columns])


def _metadata(column: Column) -> dict[bytes, bytes] | None:
    if column.others == WHOLE:
        return IS_WHOLE
    name = column.sql or _sql_type(column.schema)
    return None if name is None or _MASKS & dict(column.schema.parameters).keys() else {SQL_TYPE: name.encode()}


def _sql_type(schema: ConnectSchema) -> str | None:
    if schema.items is not None:
        item = _sql_type(schema.items)
        return None if item is None else f"{item}[]"
    return _SQL_TYPES.get(schema.name or "")


def is_bounded(column: Column) -> bool:
    """Whether the source may have values of a column that its native type does not hold, see Column.out_of_range."""
    return is_held(column.arrow) or _is_time(column.schema)


def _is_time(schema: ConnectSchema) -> bool:
    if schema.items is not None:
        return _is_time(schema.items)
    return schema.name in _DAYS or schema.name in _TIMESTAMPS or schema.name == _ZONED


def compared_rows(table: TableSchema, images: pa.StructArray) -> pa.Table:
    """Row images in native types, with all values: a column that cannot hold some has them as held.py says."""
    columns = [
        replace(each, others=HELD) if is_held(each.arrow) and each.out_of_range != NULL else each
        for each in table.columns
    ]
    rows = native_rows(replace(table, columns=tuple(columns)), images)
    return pa.Table.from_arrays(rows.flatten(), schema=pa.schema(list(rows.type)))


def with_whole(table: TableSchema, images: Sequence[pa.StructArray]) -> TableSchema:
    """The table whose columns are of texts where an image has a value that their type cannot hold."""
    places = [place for place, each in enumerate(table.columns) if is_held(each.arrow) and each.out_of_range != NULL]
    if not places:
        return table
    # Below an image that is null there may be anything.
    rows = [each.flatten() for each in images]
    whole = {place for place in places if any(_has_text(each[place]) for each in rows)}
    columns = [replace(each, others=WHOLE) if place in whole else each for place, each in enumerate(table.columns)]
    return replace(table, columns=tuple(columns))


def _has_text(column: pa.StructArray) -> bool:
    text = text_of(column)
    return bool(text.null_count < len(text))


def native_rows(table: TableSchema, struct: pa.StructArray) -> pa.StructArray:
    """Row images (`TableSchema.row_type`) in native types; a null image stays null. Raises DecodeError."""
    arrays = [_column(table, column, values) for column, values in zip(table.columns, struct.flatten(), strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(native_schema(table)), mask=struct.is_null())


def _column(table: TableSchema, column: Column, values: pa.Array) -> pa.Array:
    try:
        return _Conversion(column.out_of_range, column.others).of(column.schema, values)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DecodeError(
            "a value has no counterpart in a lakehouse table (an infinite time, a year outside 1 to 9999, or a value "
            "that is none of the column's type)",
            where=f"{table.id}, column {column.name}",
            remedy=f"let the column be text (column.out.of.range.text={table.id}.{column.name}), let such values be "
            f"null (column.out.of.range.null={table.id}.{column.name}), or leave the column out (column.exclude.list)",
        ) from error


def whole_values(schema: ConnectSchema, values: pa.Array) -> pa.Array:
    """Values of a type in its native type, all of them: as texts where the type cannot hold some."""
    return _Conversion(ERROR, WHOLE).of(schema, values)


def lost(column: Column) -> str | None:
    """What a column of native types does not keep of the source's values, None where it keeps all."""
    name = column.schema.name
    keeps_all = column.out_of_range == TEXT and (name == _ZONED or _TIMESTAMPS.get(name) == "ns")
    told = [column.loses] if column.loses and not keeps_all else []
    if column.out_of_range == NULL and _has_limits(column.schema, column.arrow):
        told.append("values that it does not hold, which are null")
    return " and ".join(told) or None


def _has_limits(schema: ConnectSchema, arrow: pa.DataType) -> bool:
    """Whether the source has values that the native type does not have."""
    if schema.items is not None and pa.types.is_list(arrow):
        return _has_limits(schema.items, arrow.value_type)
    return is_held(arrow) or schema.name in _DAYS or schema.name in _TIMESTAMPS or schema.name == _ZONED


def plain_decimals(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """A column of decimals (Connect's `Decimal`, or `VariableScaleDecimal`) as text in plain notation."""
    if schema.name == _VARIABLE:
        return _variable(values)
    if not pa.types.is_decimal(values.type):
        return _unscaled_text(values, schema)
    return plain(values)


def _type(schema: ConnectSchema, arrow: pa.DataType, *, as_text: bool = False) -> pa.DataType:
    if as_text and (schema.name in _DAYS or schema.name in _TIMESTAMPS or schema.name == _ZONED):
        return pa.string()
    if is_held(arrow):
        return _type(schema, arrow.field(0).type, as_text=as_text)
    if schema.name in _DAYS:
        return pa.date32()
    if schema.name in _TIMESTAMPS:
        return pa.timestamp("us")
    if schema.name == _ZONED:
        return pa.timestamp("us", "UTC")
    if schema.name in _TIMES or schema.name == _VARIABLE or _is_too_wide(schema, arrow):
        return pa.string()
    if pa.types.is_decimal256(arrow):
        return pa.decimal128(arrow.precision, arrow.scale)
    if schema.items is not None and pa.types.is_list(arrow):
        return pa.list_(_type(schema.items, arrow.value_type, as_text=as_text))
    return arrow


@dataclass(frozen=True)
class _Conversion:
    """The conversion of a column's values, with what becomes of those that do not fit."""

    out_of_range: str
    others: str = ERROR

    def of(self, schema: ConnectSchema, values: pa.Array) -> pa.Array:
        if is_held(values.type):
            return self._held(schema, values)
        target = _type(schema, values.type, as_text=self.out_of_range == TEXT)
        if schema.name in _DAYS:
            return self._days(values).cast(target)
        if schema.name in _TIMESTAMPS:
            return self._timestamps(values, _TIMESTAMPS[schema.name])
        if schema.name == _ZONED and self.out_of_range != TEXT:
            return self._zoned(values)
        if schema.items is not None and pa.types.is_list(values.type) and target != values.type:
            items = schema.items
            return _per_item(values, lambda items_values: self.of(items, items_values), target)
        if pa.types.is_floating(values.type):
            return _one_nan(values)
        return values if target == values.type else _convert(schema, values)

    def _held(self, schema: ConnectSchema, values: pa.StructArray) -> pa.Array:
        text = text_of(values)
        converted = _Conversion(self.out_of_range).of(schema, value_of(values))
        if self.others == HELD:
            return held(converted, text)
        if self.others == WHOLE or pa.types.is_string(converted.type):
            return pc.coalesce(text, texts(converted))
        if self.out_of_range != NULL and text.null_count < len(text):
            raise pa.ArrowInvalid("a value that is no value of the type")
        return converted

    def _days(self, values: pa.Array) -> pa.Array:
        if self.out_of_range == TEXT:
            return odd_times.dates(values)
        return self._fit(values, FIRST_DAY, LAST_DAY)

    def _timestamps(self, values: pa.Array, unit: odd_times.Unit) -> pa.Array:
        if self.out_of_range == TEXT:
            return odd_times.timestamps(values, unit)
        multiply, divide = _UNITS[unit]
        first, last = FIRST_DAY * DAY_US, (LAST_DAY + 1) * DAY_US - 1
        wide = values.cast(pa.int64())
        if multiply > 1:
            fit = self._fit(wide, first // multiply, last // multiply)
        else:
            # Nanoseconds of 64 bits end within the years that fit; the outermost ones stand for the infinities.
            fit = self._fit(wide, max(first * divide, -(2**63) + 1), min(last * divide, 2**63 - 2))
        return _micros(fit, multiply, divide).cast(pa.timestamp("us"))

    def _zoned(self, values: pa.Array) -> pa.Array:
        if self.out_of_range != ERROR:
            values = pc.if_else(pc.match_substring_regex(values, _FOUR_DIGITS), values, pa.scalar(None, values.type))
        fine = pc.max(pc.binary_length(values)).as_py()
        if fine is not None and fine > len("2018-06-20T13:37:03.123456Z"):
            values = pc.replace_substring_regex(values, r"(\.\d{6})\d+", r"\1")
        return values.cast(pa.timestamp("us", "UTC"))

    def _fit(self, values: pa.Array, low: int, high: int) -> pa.Array:
        if self.out_of_range == ERROR:
            return _within(values, low, high)
        fits = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        return pc.if_else(fits, values, pa.scalar(None, values.type))


def _convert(schema: ConnectSchema, values: pa.Array) -> pa.Array:
    target = _type(schema, values.type)
    if schema.name in _TIMES:
        return _clock(_micros(values, *_TIMES[schema.name]))
    if schema.name == _VARIABLE:
        return _variable(values)
    if schema.name == _DECIMAL and pa.types.is_binary(values.type):
        return _unscaled_text(values, schema)
    return values.cast(target) if pa.types.is_decimal(target) else plain(values)


def _one_nan(values: pa.Array) -> pa.Array:
    """Floats whose NaN is always the same, as engines compare it by its bits. A computed one may be negative."""
    odd = pc.is_nan(values)
    return pc.if_else(odd, pa.scalar(float("nan"), values.type), values) if pc.any(odd).as_py() else values


def _is_too_wide(schema: ConnectSchema, arrow: pa.DataType) -> bool:
    """Whether a decimal is none of a lakehouse's. Those that no Arrow decimal holds either come as unscaled bytes."""
    if not pa.types.is_decimal(arrow):
        return schema.name == _DECIMAL and bool(pa.types.is_binary(arrow))
    return bool(arrow.precision > _MAX_DIGITS or not 0 <= arrow.scale <= arrow.precision)


def _per_item(values: pa.Array, convert: Callable[[pa.Array], pa.Array], target: pa.DataType) -> pa.Array:
    whole = values.take(pa.array(np.arange(len(values)))) if values.offset else values  # a mask cannot go with a slice
    return pa.ListArray.from_arrays(whole.offsets, convert(whole.values), type=target, mask=whole.is_null())


def _micros(values: pa.Array, multiply: int, divide: int) -> pa.Array:
    wide = values.cast(pa.int64())
    if divide == 1:
        return wide if multiply == 1 else pc.multiply_checked(wide, multiply)
    _within(wide, -(2**63) + 1, 2**63 - 2)  # the ends stand for the infinities
    # Arrow divides towards zero; a moment before 1970 is to be cut towards the past like one after it.
    floor = np.floor_divide(wide.fill_null(0).to_numpy(zero_copy_only=False), divide)
    return pa.array(floor, pa.int64(), mask=wide.is_null().to_numpy(zero_copy_only=False))


def _within(values: pa.Array, low: int, high: int) -> pa.Array:
    limits = pc.min_max(values)
    if limits["min"].is_valid and (limits["min"].as_py() < low or limits["max"].as_py() > high):
        raise pa.ArrowInvalid("out of range")
    return values


def _clock(micros: pa.Array) -> pa.Array:
    whole_day = pc.equal(micros, DAY_US)
    text = pc.if_else(whole_day, 0, micros).cast(pa.time64("us")).cast(pa.string())
    return pc.if_else(whole_day, pa.scalar(_MIDNIGHT_AFTER, pa.string()), text)


def _variable(values: pa.Array) -> pa.Array:
    """Structs of `scale` and `value` (unscaled, big-endian) as plain text, by columns unless one is beyond 31 bytes."""
    scale, unscaled = pc.struct_field(values, "scale"), pc.struct_field(values, "value").cast(pa.binary())
    valid = pc.and_(values.is_valid(), unscaled.is_valid())
    lengths = pc.binary_length(unscaled).fill_null(0).to_numpy(zero_copy_only=False)
    if len(values) == 0 or lengths.max() > 31:
        rows = zip(scale.to_pylist(), unscaled.to_pylist(), strict=True)
        return pa.array(
            [None if value is None else _plain_number(places, value) for places, value in rows], pa.string()
        )
    numbers = pa.Array.from_buffers(_WIDE, len(values), [None, pa.py_buffer(_little_endian(unscaled, lengths))])
    text = with_point(numbers.cast(pa.string()), scale.fill_null(0).to_numpy(zero_copy_only=False))
    return pc.if_else(valid, text, pa.scalar(None, pa.string()))


def _unscaled_text(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    places = int(dict(schema.parameters)["scale"])
    unscaled = values.to_pylist()
    return pa.array([None if raw is None else _plain_number(places, raw) for raw in unscaled], pa.string())


def _plain_number(scale: int, value: bytes) -> str:
    return format(_EXACT.scaleb(Decimal(int.from_bytes(value, "big", signed=True)), -scale), "f")


def _little_endian(unscaled: pa.BinaryArray, lengths: np.ndarray) -> bytes:
    """Big-endian numbers of differing lengths (at most 32 bytes) as 32-byte little-endian ones, sign extended."""
    dense = unscaled.fill_null(b"")
    data = dense.buffers()[2]
    octets = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    start = np.frombuffer(dense.buffers()[1], np.int32)[dense.offset : dense.offset + len(dense)]
    place = np.arange(32)
    inside = place[None, :] < lengths[:, None]
    last = start + lengths - 1
    out = octets[np.where(inside, last[:, None] - place[None, :], 0)]
    negative = (lengths > 0) & (octets[np.where(lengths > 0, start, 0)] >= 0x80)
    return bytes(np.where(inside, out, np.where(negative, 0xFF, 0)[:, None]).astype(np.uint8).tobytes())
