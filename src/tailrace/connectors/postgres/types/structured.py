"""Dates, times and intervals from ISO text to the structs of `time.precision.mode=structured`, by columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.lost_values import became_null
from tailrace.connectors.postgres.types import temporal
from tailrace.connectors.types import structured
from tailrace.connectors.types.temporal import DAY_US
from tailrace.connectors.value_type import ValueType
from tailrace.errors import DecodeError
from tailrace.model.arrow import join, literal

_MOMENT = r"^(?P<day>-?infinity|\d{4,}-\d\d-\d\d)(?: (?P<clock>[\d:.]+))?(?:\+00)?(?P<era> BC)?$"
# The session's zone is UTC, in which the reference engine shows these, too: its name for that zone.
_UTC = "Z"
_MOST_HOURS = 2**31 - 1


def structured_type(name: str, precision: int, strict: bool) -> ValueType:
    """A column of one of temporal.TYPES with so many digits of a second.

    `strict`: an interval that no struct holds is an error; otherwise it is null, with a warning.
    """

    def moments(text: pa.Array) -> pa.StructArray:
        days, micros = _moments(text)
        return structured.timestamps(days, _nanos(micros), precision)

    def zoned_moments(text: pa.Array) -> pa.StructArray:
        days, micros = _moments(text)
        return structured.zoned_timestamps(days, _nanos(micros), pa.repeat(0, len(text)), precision, _UTC)

    def clocks(text: pa.Array) -> pa.StructArray:
        return structured.times(_nanos(temporal.time_us(text)), precision)

    def zoned_clocks(text: pa.Array) -> pa.StructArray:
        clock, offset = temporal.clock_and_offset(text)
        return structured.zoned_times(_nanos(clock), offset, precision)

    def dates(text: pa.Array) -> pa.StructArray:
        return structured.dates(temporal.days(text))

    conversions: dict[str, tuple[str, Callable[[pa.Array], pa.StructArray]]] = {
        "date": (structured.DATE, dates),
        "time": (structured.TIME, clocks),
        "timetz": (structured.ZONED_TIME, zoned_clocks),
        "timestamp": (structured.TIMESTAMP, moments),
        "timestamptz": (structured.ZONED_TIMESTAMP, zoned_moments),
        "interval": (structured.DURATION, lambda text: _durations(text, precision, strict)),
    }
    kind, convert = conversions[name]
    return structured.structured_type(kind, convert, precision)


def _nanos(micros: pa.Array) -> pa.Array:
    return pc.multiply(micros, 1000)


def _moments(text: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Days since 1970, among them those of infinity, and microseconds of the day."""
    try:
        # A zone is printed where there is one, and it is UTC.
        plain = pc.replace_substring_regex(text, r"\+00$", "")
        return structured.split_days(pc.cast(pc.cast(plain, pa.timestamp("us")), pa.int64()), DAY_US)
    except pa.ArrowInvalid:
        parts = pc.extract_regex(text, _MOMENT)
        if parts.null_count != text.null_count:
            raise DecodeError("a timestamp is not in ISO output") from None
        day, clock, era = (pc.struct_field(parts, name) for name in ("day", "clock", "era"))
        # What the reference engine's driver makes of -infinity is beyond 32 bits.
        days = temporal.days(join(day, era), pa.int64())
        return days, temporal.time_us(pc.if_else(pc.equal(clock, ""), "00:00:00", clock))


def _durations(text: pa.Array, precision: int, strict: bool) -> pa.StructArray:
    """INTERVAL by its parts, each with its sign; null for infinities, which the struct has no place for."""
    is_infinite = pc.is_in(text, pa.array(temporal.INFINITE))
    parts = temporal.interval_parts(pc.if_else(is_infinite, pa.scalar(None, text.type), text))
    is_far = pc.or_(is_infinite, pc.fill_null(pc.greater(pc.abs(_whole(parts["hours"])), _MOST_HOURS), False))
    if is_far.true_count:
        _tell(is_far.true_count, strict)
        parts = {name: pc.if_else(is_far, literal(None), part) for name, part in parts.items()}
    whole = {name: _whole(part) for name, part in parts.items() if name != "seconds"}
    read = pc.fill_null(pc.cast(parts["seconds"], pa.float64()), 0).to_numpy(zero_copy_only=False)
    seconds = np.trunc(read)
    nanos = np.rint((read - seconds) * 1e6).astype(np.int64) * 1000
    fine = {"seconds": pa.array(seconds.astype(np.int64)), "nanos": pa.array(nanos)}
    return structured.structs(structured.DURATION, {**whole, **fine}, pc.or_(text.is_null(), is_far), precision)


def _whole(part: pa.Array) -> pa.Array:
    return pc.cast(part, pa.int64())


def _tell(count: int, strict: bool) -> None:
    if strict:
        raise DecodeError(
            "an infinite interval, or one of more than 2,147,483,647 hours, has no structured form",
            remedy="set time.precision.mode to adaptive, and interval.handling.mode to string",
        )
    became_null(count, "intervals without a structured form")
