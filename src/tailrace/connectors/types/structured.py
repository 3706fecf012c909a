"""Dates, times and durations of `time.precision.mode=structured`: structs of calendar and clock parts, by columns.

Names, fields, their order and their types are those of Debezium 3.7 (io.debezium.time.Structured*). Every field is
optional: of an infinity there are `specialValue` and `precision` alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.types.temporal import DAY_US
from tailrace.connectors.value_type import Convert, ValueType
from tailrace.model.odd_times import INFINITY_DAYS
from tailrace.model.schema import ConnectSchema, Field

Parts = Mapping[str, pa.Array]

DAY_NS = 1000 * DAY_US
_SECOND_NS = 1_000_000_000
_ARROW = {"int8": pa.int8(), "int32": pa.int32(), "int64": pa.int64(), "string": pa.string()}
_CALENDAR = {"year": "int32", "month": "int8", "day": "int8"}
_CLOCK = {"hour": "int8", "minute": "int8", "second": "int8", "nanos": "int32"}
_OFFSET, _SPECIAL, _PRECISION = {"offsetSeconds": "int32"}, {"specialValue": "string"}, {"precision": "int32"}
_NAMES = {"infinity": "POSITIVE_INFINITY", "-infinity": "NEGATIVE_INFINITY"}
DATE, TIME, TIMESTAMP = "StructuredDate", "StructuredTime", "StructuredTimestamp"
ZONED_TIME, ZONED_TIMESTAMP, DURATION = "StructuredZonedTime", "StructuredZonedTimestamp", "StructuredDuration"
_FIELDS = {
    DATE: _CALENDAR | _SPECIAL,
    TIME: _CLOCK | _PRECISION,
    TIMESTAMP: _CALENDAR | _CLOCK | _SPECIAL | _PRECISION,
    ZONED_TIME: _CLOCK | _OFFSET | _PRECISION,
    ZONED_TIMESTAMP: _CALENDAR | _CLOCK | _OFFSET | {"zoneId": "string"} | _SPECIAL | _PRECISION,
    DURATION: {
        **dict.fromkeys(("years", "months", "days", "hours", "minutes"), "int32"),
        "seconds": "int64",
        "nanos": "int32",
        **_PRECISION,
    },
}
_ARROW_TYPES = {
    kind: pa.struct([(name, _ARROW[connect]) for name, connect in fields.items()]) for kind, fields in _FIELDS.items()
}
# What a null of a required column is, as in the other modes: the first moment of 1970, the empty duration.
_FIRST = {"year": 1970, "month": 1, "day": 1}


def structured_type(kind: str, convert: Convert, precision: int | None = None) -> ValueType:
    """The type of a column whose form `convert` makes into structs; `precision` is its digits of a second.

    Its schema shows no default: Kafka Connect takes no struct for one (KAFKA-12694).
    """
    fields = _FIELDS[kind]
    zero = {name: None if connect == "string" else _FIRST.get(name, 0) for name, connect in fields.items()}
    if "precision" in fields:
        zero["precision"] = precision
    schema = ConnectSchema(
        "struct",
        name=f"io.debezium.time.{kind}",
        version=1,
        fields=tuple(Field(name, ConnectSchema(connect, optional=True)) for name, connect in fields.items()),
        empty=json.dumps(zero, separators=(",", ":")),
    )
    return ValueType(schema, _ARROW_TYPES[kind], convert)


def structs(kind: str, parts: Parts, nulls: pa.Array, precision: int | None = None) -> pa.StructArray:
    """Structs of some parts, null where `nulls` is true; parts that are not given are null.

    Raises pa.ArrowInvalid for a number that its field cannot hold.
    """
    rows = len(nulls)
    if precision is not None:
        parts = {**parts, "precision": pa.repeat(pa.scalar(precision, pa.int32()), rows)}
    columns = [
        pc.cast(parts[field.name], field.type) if field.name in parts else pa.nulls(rows, field.type)
        for field in _ARROW_TYPES[kind]
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_ARROW_TYPES[kind]), mask=nulls)


def dates(days: pa.Array) -> pa.StructArray:
    """Days since 1970, among them those of INFINITY_DAYS."""
    special = _special(days)
    return structs(DATE, {**_but(special, _calendar(days)), "specialValue": special}, days.is_null())


def times(nanos: pa.Array, precision: int) -> pa.StructArray:
    """Nanoseconds of the day; the end of the day has the hour 24."""
    return structs(TIME, _clock(nanos), nanos.is_null(), precision)


def zoned_times(nanos: pa.Array, offset: pa.Array, precision: int) -> pa.StructArray:
    """Nanoseconds of the day at an offset, in seconds."""
    return structs(ZONED_TIME, {**_clock(nanos), "offsetSeconds": offset}, nanos.is_null(), precision)


def timestamps(days: pa.Array, nanos: pa.Array, precision: int) -> pa.StructArray:
    """Days since 1970, among them those of INFINITY_DAYS, and nanoseconds of the day."""
    special = _special(days)
    parts = _but(special, {**_calendar(days), **_clock(nanos)})
    return structs(TIMESTAMP, {**parts, "specialValue": special}, days.is_null(), precision)


def zoned_timestamps(
    days: pa.Array, nanos: pa.Array, offset: pa.Array, precision: int, zone: str | None = None
) -> pa.StructArray:
    """`timestamps` at an offset, in seconds, under the name of a zone or without one."""
    special = _special(days)
    parts = {**_calendar(days), **_clock(nanos), "offsetSeconds": offset}
    if zone is not None:
        parts["zoneId"] = pa.repeat(pa.scalar(zone, pa.string()), len(days))
    return structs(ZONED_TIMESTAMP, {**_but(special, parts), "specialValue": special}, days.is_null(), precision)


def split_days(fine: pa.Array, day: int) -> tuple[pa.Array, pa.Array]:
    """Units since 1970 as days and the rest of the day, in the same units; a day has `day` of these."""
    numbers, nulls = _numbers(fine), fine.is_null().to_numpy(zero_copy_only=False)
    days = np.floor_divide(numbers, day)
    return pa.array(days, mask=nulls), pa.array(numbers - days * day, mask=nulls)


def _special(days: pa.Array) -> pa.Array:
    """The names of infinities, null where a day is none."""
    names = pa.nulls(len(days), pa.string())
    for printed, number in INFINITY_DAYS.items():
        names = pc.if_else(pc.fill_null(pc.equal(days, number), False), pa.scalar(_NAMES[printed]), names)
    return names


def _but(special: pa.Array, parts: Parts) -> Parts:
    """The parts, null where there is a special value."""
    if special.null_count == len(special):
        return parts
    is_special = special.is_valid()
    return {name: pc.if_else(is_special, pa.scalar(None, part.type), part) for name, part in parts.items()}


def _calendar(days: pa.Array) -> dict[str, pa.Array]:
    """Year, month and day in the proleptic Gregorian calendar; 1 BC is the year 0."""
    dates = _numbers(days).view("datetime64[D]")
    months = dates.astype("datetime64[M]")
    counts = months.astype(np.int64)
    years = np.floor_divide(counts, 12)
    day = (dates - months.astype("datetime64[D]")).astype(np.int64) + 1
    return {"year": pa.array(years + 1970), "month": pa.array(counts - years * 12 + 1), "day": pa.array(day)}


def _clock(nanos: pa.Array) -> dict[str, pa.Array]:
    numbers = _numbers(nanos)
    seconds = numbers // _SECOND_NS
    parts = {"hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60}
    return {name: pa.array(part) for name, part in {**parts, "nanos": numbers - seconds * _SECOND_NS}.items()}


def _numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = pc.fill_null(pc.cast(values, pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers
