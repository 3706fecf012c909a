"""Dates, times, timestamps and intervals: from ISO text to Connect's integers and texts, by columns.

The server prints ISO dates in UTC (see connect.py). Nearly every value has the plain form that Arrow parses; the few
others (BC, years beyond 9999, infinity) are taken one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.postgres.options import INTERVAL_HANDLING_MODE, ROWS_FOR_REPLICA
from tailrace.connectors.postgres.types.driver_times import date_as_read
from tailrace.connectors.types import temporal
from tailrace.connectors.types.temporal import DAY_US, DAYS, ISO, LARGEST, MICROS, MILLIS, NANOS, SMALLEST
from tailrace.connectors.value_type import Convert, ValueType, is_strict, keeps_all
from tailrace.errors import DecodeError
from tailrace.model.arrow import join, literal
from tailrace.model.odd_times import INFINITY_DAYS as INFINITY_DAYS
from tailrace.model.odd_times import INFINITY_US as INFINITY_US
from tailrace.model.schema import ConnectSchema

TYPES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")


def temporal_type(name: str, modifier: int, config: Config) -> ValueType:
    """A column of one of TYPES under `time.precision.mode` and `interval.handling.mode`."""
    mode = temporal.precision_mode(config)
    digits = 6 if modifier < 0 else modifier
    if name == "interval":
        mode, is_exact = config[INTERVAL_HANDLING_MODE], config[ROWS_FOR_REPLICA]
        return _interval(mode, exact_us if is_exact else interval_us)
    if name == "timestamptz":
        return temporal.zoned_timestamp_form(digits).read_by(lambda text: zoned_text(text, digits))
    if name == "timetz":
        return replace(temporal.zoned_time_form().read_by(zoned_time_text), loses="its zone")
    if name == "date":
        form = temporal.date_form(mode)
        return form.read_by({DAYS: days, ISO: _iso_date}[form.unit])
    if name == "time":
        form = temporal.time_form(mode, digits)
        return form.read_by({MILLIS: time_ms, MICROS: time_us, NANOS: _time_ns, ISO: _iso_time}[form.unit], digits)
    form, strict = temporal.timestamp_form(mode, digits, keeps_all=keeps_all(config)), is_strict(config)
    conversions: dict[str, Convert] = {
        MILLIS: timestamp_ms,
        MICROS: timestamp_us,
        NANOS: lambda text: timestamp_ns(text, strict),
        ISO: _iso_timestamp,
    }
    return form.read_by(conversions[form.unit], digits)


# What the reference engine's driver makes of infinity where it reads a DATE from a table or an array.
_DRIVER_DATES = {
    "infinity": {DAYS: -622_191_234, ISO: "+292278994-08-16Z"},
    "-infinity": {DAYS: -625_821_272, ISO: "+292269055-12-02Z"},
}


def driver_date(config: Config) -> ValueType:
    """A DATE as the reference engine's driver reads it: without its era, past days that Java's calendar skips.

    Defaults are not read by the driver.
    """
    form = temporal.date_form(temporal.precision_mode(config))
    plain = {DAYS: days, ISO: _iso_date}[form.unit]

    def convert(text: pa.Array) -> pa.Array:
        values = plain(date_as_read(text))
        for printed, shown in _DRIVER_DATES.items():
            values = pc.if_else(pc.equal(text, literal(printed)), pa.scalar(shown[form.unit], values.type), values)
        return values

    return replace(form.read_by(convert), of_default=plain)


_DAY = pa.int32()
_PLAIN = r"^\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?$"
_ODD = re.compile(r"^(\d{4,})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?(?:\+00)?( BC)?$")


def _astronomical(text: str) -> tuple[int, int, int, int]:
    """Year (1 BC is 0), month, day and microsecond of the day of a date or timestamp in any era."""
    match = _ODD.match(text)
    if match is None:
        raise DecodeError(f"{text!r} is not a date or timestamp in ISO output")
    year, month, day, hour, minute, second, fraction, era = match.groups()
    micros = ((int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)) * 1_000_000
    return 1 - int(year) if era else int(year), int(month), int(day), micros + int((fraction or "").ljust(6, "0"))


def days(text: pa.Array, arrow: pa.DataType = _DAY) -> pa.Array:
    """DATE as days since 1970, of the Arrow type that is given."""

    def odd(value: str) -> int:
        return INFINITY_DAYS[value] if value in INFINITY_DAYS else temporal.epoch_day(*_astronomical(value)[:3])

    def plain(values: pa.Array) -> pa.Array:
        return pc.cast(pc.cast(pc.cast(values, pa.date32()), pa.int32()), arrow)

    return temporal.with_odd_values(text, plain, _PLAIN, odd, arrow)


def timestamp_us(text: pa.Array) -> pa.Array:
    """TIMESTAMP as microseconds since 1970, read as UTC."""
    return _timestamps(text, 1)


def timestamp_ms(text: pa.Array) -> pa.Array:
    """TIMESTAMP as milliseconds since 1970, read as UTC."""
    return _timestamps(text, 1000)


def _timestamps(text: pa.Array, unit_us: int) -> pa.Array:
    def plain(values: pa.Array) -> pa.Array:
        micros = pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64())
        return micros if unit_us == 1 else temporal.coarser(micros, unit_us)

    def odd(value: str) -> int:
        if value in INFINITY_US:
            return INFINITY_US[value] // unit_us
        year, month, day, micros = _astronomical(value)
        # Microseconds in an int64 end in January 294247, PostgreSQL's timestamps in December 294276.
        return min((temporal.epoch_day(year, month, day) * DAY_US + micros) // unit_us, LARGEST)

    return temporal.with_odd_values(text, plain, _PLAIN, odd, pa.int64())


def timestamp_ns(text: pa.Array, strict: bool) -> pa.Array:
    """TIMESTAMP as nanoseconds since 1970, infinity as the outermost int64.

    What int64 cannot hold is null, with a warning, or raises DecodeError if `strict`.
    """
    micros = timestamp_us(text)
    highest = pc.equal(micros, INFINITY_US["infinity"])
    lowest = pc.equal(micros, INFINITY_US["-infinity"])
    nanos = temporal.nanoseconds(pc.if_else(pc.or_(highest, lowest), 0, micros), strict)
    return pc.if_else(highest, LARGEST, pc.if_else(lowest, SMALLEST, nanos))


def time_us(text: pa.Array) -> pa.Array:
    """TIME as microseconds of the day; 24:00:00 is 86,400,000,000."""
    midnight = pc.equal(text, literal("24:00:00"))
    within = pc.if_else(midnight, literal("00:00:00"), text)
    stamped = join("1970-01-01 ", within)
    micros = pc.cast(pc.cast(stamped, pa.timestamp("us")), pa.int64())
    return pc.if_else(midnight, DAY_US, micros)


def time_ms(text: pa.Array) -> pa.Array:
    """TIME as milliseconds of the day."""
    return pc.cast(temporal.coarser(time_us(text), 1000), pa.int32())


def _time_ns(text: pa.Array) -> pa.Array:
    return pc.multiply(time_us(text), 1000)


_PLAIN_ZONED = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$"


def zoned_text(text: pa.Array, digits: int) -> pa.Array:
    """TIMESTAMPTZ (printed in UTC) as ISO-8601 with `Z` and exactly `digits` digits of fraction."""

    def plain(text: pa.Array) -> pa.Array:
        instants = pc.cast(pc.cast(text, pa.timestamp("us", "UTC")), pa.timestamp("us"))
        shown = pc.cast(instants, pa.string())  # six digits, always
        clock = pc.utf8_slice_codeunits(shown, 11, 20 + digits if digits else 19)
        return join(pc.utf8_slice_codeunits(shown, 0, 10), "T", clock, "Z")

    return temporal.with_odd_values(text, plain, _PLAIN_ZONED, lambda value: _odd_zoned(value, digits), pa.string())


def _odd_zoned(value: str, digits: int) -> str:
    if value in INFINITY_US:
        return value
    day, clock, micros = _shown(value)
    return f"{day}T{clock}" + (f".{micros:06d}"[: digits + 1] if digits else "") + "Z"


def _shown(value: str) -> tuple[str, str, int]:
    """Date (as ISO-8601 has it, other years than four digits signed), time and microsecond of an odd value."""
    year, month, day, micros = _astronomical(value)
    clock, fraction = temporal.clock(micros)
    return temporal.iso_date(year, month, day), clock, fraction


_ZONE = r"^(?P<clock>[\d:.]+)(?P<sign>[+-])(?P<hours>\d\d)(?::(?P<minutes>\d\d))?(?::(?P<seconds>\d\d))?$"


def zoned_time_text(text: pa.Array) -> pa.Array:
    """TIMETZ moved to UTC, `11:51:30.123789Z`, with no more digits of fraction than it needs."""
    clock, offset = clock_and_offset(text)
    shifted = pc.subtract(clock, pc.multiply(offset, 1_000_000)).to_numpy(zero_copy_only=False)
    nulls = temporal.nulls_of(text)
    within = np.mod(np.nan_to_num(shifted).astype(np.int64), DAY_US)
    # 24:00 is 00:00, as in the reference engine.
    return join(temporal.clock_text(pa.array(within, mask=nulls)), "Z")


def clock_and_offset(text: pa.Array) -> tuple[pa.Array, pa.Array]:
    """TIMETZ as microseconds of its day and its offset in seconds."""
    parts = pc.extract_regex(text, _ZONE)
    if parts.null_count != text.null_count:
        raise DecodeError("a TIMETZ value is not in ISO output")
    return time_us(pc.struct_field(parts, "clock")), _seconds(parts)


def _seconds(parts: pa.StructArray) -> pa.Array:
    total = None
    for name, factor in (("hours", 3600), ("minutes", 60), ("seconds", 1)):
        piece = pc.struct_field(parts, name)
        count = pc.cast(pc.if_else(pc.equal(piece, literal("")), literal("0"), piece), pa.int64())
        total = pc.multiply(count, factor) if total is None else pc.add(total, pc.multiply(count, factor))
    return pc.if_else(pc.equal(pc.struct_field(parts, "sign"), literal("-")), pc.negate(total), total)


# What the reference engine writes for infinity, its day numbers and instants as text.
_INFINITY_DATES = {"infinity": "-5877611-06-21Z", "-infinity": "-5877611-06-22Z"}
_INFINITY_STAMPS = {"infinity": "+294247-01-10T04:00:25.2Z", "-infinity": "-290308-12-21T19:59:27.6Z"}


def _iso_date(text: pa.Array) -> pa.Array:
    def odd(value: str) -> str:
        return _INFINITY_DATES[value] if value in _INFINITY_DATES else f"{_shown(value)[0]}Z"

    return temporal.patched(text, join(text, "Z"), _PLAIN, odd)


def _iso_time(text: pa.Array) -> pa.Array:
    return join(pc.if_else(pc.equal(text, literal("24:00:00")), literal("00:00:00"), text), "Z")


def _iso_timestamp(text: pa.Array) -> pa.Array:
    def odd(value: str) -> str:
        if value in _INFINITY_STAMPS:
            return _INFINITY_STAMPS[value]
        day, clock, micros = _shown(value)
        return f"{day}T{clock}" + (f".{micros:06d}".rstrip("0") if micros else "") + "Z"

    return temporal.patched(text, join(pc.replace_substring(text, " ", "T"), "Z"), _PLAIN, odd)


INFINITE = ("infinity", "-infinity")
# Microseconds of a month of 365.25 / 12 days, a day, an hour, a minute, a second and themselves.
_FACTORS = (2_629_800_000_000, 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1)
_INTERVAL = (
    r"^P(?:(?P<years>-?\d+)Y)?(?:(?P<months>-?\d+)M)?(?:(?P<days>-?\d+)D)?"
    r"(?:T(?:(?P<hours>-?\d+)H)?(?:(?P<minutes>-?\d+)M)?(?:(?P<seconds>-?[\d.]+)S)?)?$"
)


def _interval(mode: str, in_us: Callable[[pa.Array], pa.Array]) -> ValueType:
    """Infinities are the outermost values. `in_us` makes numbers of the texts of finite ones."""
    if mode == "string":
        nothing = "P0Y0M0DT0H0M0S"
        convert = _infinite(interval_text, *INFINITE)
        return ValueType(_span("string", "Interval"), pa.string(), convert, nothing, form=mode)
    convert = _infinite(in_us, LARGEST, SMALLEST)
    return ValueType(_span("int64", "MicroDuration"), pa.int64(), convert, 0, loses="its months and days")


def _span(connect: str, name: str) -> ConnectSchema:
    return ConnectSchema(connect, name=f"io.debezium.time.{name}", version=1)


def _infinite(
    finite: Callable[[pa.Array], pa.Array], highest: object, lowest: object
) -> Callable[[pa.Array], pa.Array]:
    """A conversion of INTERVAL that knows its infinities, which came with PostgreSQL 17."""

    def convert(text: pa.Array) -> pa.Array:
        is_highest, is_lowest = (pc.equal(text, literal(printed)) for printed in INFINITE)
        if not pc.any(pc.or_(is_highest, is_lowest)).as_py():
            return finite(text)
        rest = finite(pc.if_else(pc.or_(is_highest, is_lowest), pa.scalar(None, text.type), text))
        return pc.if_else(is_highest, highest, pc.if_else(is_lowest, lowest, rest))

    return convert


def interval_parts(text: pa.Array) -> dict[str, pa.Array]:
    """Years, months, days, hours, minutes and seconds of ISO 8601 durations, as texts of numbers."""
    parts = pc.extract_regex(text, _INTERVAL)
    if parts.null_count != text.null_count:
        raise DecodeError("an INTERVAL value is not in ISO 8601 output")
    names = ("years", "months", "days", "hours", "minutes", "seconds")
    pieces = {name: pc.struct_field(parts, name) for name in names}
    return {name: pc.if_else(pc.equal(piece, literal("")), literal("0"), piece) for name, piece in pieces.items()}


def interval_us(text: pa.Array) -> pa.Array:
    """INTERVAL as microseconds, a month being 365.25 / 12 days; in doubles and cut, as the reference engine does."""
    months, days, hours, minutes, seconds, rest = _interval_numbers(text)
    days = months * (365.25 / 12) + days
    micros = (((days * 24 + hours) * 60 + minutes) * 60 + (seconds + rest / 1e6)) * 1e6
    return pa.array(_outermost(micros, micros), mask=temporal.nulls_of(text))


def exact_us(text: pa.Array) -> pa.Array:
    """INTERVAL as microseconds, a month being 365.25 / 12 days; exactly, up to the outermost numbers."""
    numbers = _interval_numbers(text)
    about, total = np.zeros(len(text)), np.zeros(len(text), np.int64)
    for number, factor in zip(numbers, _FACTORS, strict=True):
        about += number * factor
        # What is beyond 64 bits on the way is within them again in the end.
        total += number.astype(np.int64) * np.int64(factor)
    return pa.array(_outermost(about, total), mask=temporal.nulls_of(text))


def _interval_numbers(text: pa.Array) -> tuple[npt.NDArray[np.float64], ...]:
    """Months, days, hours, minutes, seconds and microseconds, as whole numbers."""
    years, months, days, hours, minutes, read = (
        pc.fill_null(pc.cast(piece, pa.float64()), 0).to_numpy(zero_copy_only=False)
        for piece in interval_parts(text).values()
    )
    seconds = np.trunc(read)
    return years * 12 + months, days, hours, minutes, seconds, np.rint((read - seconds) * 1e6)


def _outermost(about: npt.NDArray[np.float64], values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Values as integers, or the outermost ones where they are beyond these by what they are about."""
    # The largest double below 2^63 is 2^63 - 1024. So near to it a double does not tell whether an integer is beyond.
    integers = np.clip(about, -(2.0**63), 2.0**63 - 1024).astype(np.int64)
    is_within = np.abs(about) < 2.0**63 - 4096
    integers[is_within] = values[is_within].astype(np.int64)
    integers[about >= 2.0**63] = LARGEST
    return integers


def interval_text(text: pa.Array) -> pa.Array:
    """INTERVAL as `P1Y2M3DT4H5M6.789S`, every part present."""
    parts = interval_parts(text)
    pieces = ["P", parts["years"], "Y", parts["months"], "M", parts["days"], "DT"]
    pieces += [parts["hours"], "H", parts["minutes"], "M", parts["seconds"], "S"]
    return join(*pieces)
