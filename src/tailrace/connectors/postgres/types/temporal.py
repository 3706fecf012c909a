"""Dates, times, timestamps and intervals: from ISO text to Connect's integers and texts, by columns.

The server prints ISO dates in UTC (see connect.py). Nearly every value has the plain form that Arrow parses; the few
others (BC, years beyond 9999, infinity) are taken one by one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.errors import DecodeError
from tailrace.events.encode.arrow import join, literal
from tailrace.model.schema import ConnectSchema

log = logging.getLogger(__name__)

Temporal = tuple[ConnectSchema, pa.DataType, Callable[[pa.Array], pa.Array], object]

TYPES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")
DAY_US = 86_400_000_000
LARGEST, SMALLEST = 2**63 - 1, -(2**63)
# What the reference engine writes for infinity (its driver's largest and smallest instant).
INFINITY_US = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
INFINITY_DAYS = {"infinity": -2_147_472_692, "-infinity": -2_147_472_691}


def temporal(name: str, modifier: int, config: Config) -> Temporal:
    """How a column of that type is read under `time.precision.mode`: schema, Arrow type, conversion, zero."""
    mode = config.text("time.precision.mode")
    if name == "interval":
        return _interval(config.text("interval.handling.mode"), config.flag("compat.faults"))
    digits = 6 if modifier < 0 else modifier
    if name == "timestamptz":
        return _semantic(
            "string", "io.debezium.time.ZonedTimestamp", lambda text: zoned_text(text, digits), _zoned_zero(digits)
        )
    if name == "timetz":
        return _semantic("string", "io.debezium.time.ZonedTime", zoned_time_text, None)
    if mode == "isostring":
        return _iso(name)
    if name == "date":
        schema = "org.apache.kafka.connect.data.Date" if mode == "connect" else "io.debezium.time.Date"
        return _semantic("int32", schema, days, 0)
    return _time(mode, digits) if name == "time" else _timestamp(mode, digits, _is_strict(config))


def _semantic(connect: str, name: str, convert: Callable[[pa.Array], pa.Array], zero: object) -> Temporal:
    arrow = {"int32": pa.int32(), "int64": pa.int64(), "string": pa.string()}[connect]
    return ConnectSchema(connect, name=name, version=1), arrow, convert, zero


def _time(mode: str, digits: int) -> Temporal:
    if mode == "connect":
        return _semantic("int32", "org.apache.kafka.connect.data.Time", time_ms, 0)
    if mode == "nanoseconds":
        return _semantic("int64", "io.debezium.time.NanoTime", lambda text: pc.multiply(time_us(text), 1000), 0)
    if mode == "adaptive" and digits <= 3:
        return _semantic("int32", "io.debezium.time.Time", time_ms, 0)
    return _semantic("int64", "io.debezium.time.MicroTime", time_us, 0)


def _is_strict(config: Config) -> bool:
    return config.text("event.converting.failure.handling.mode") == "fail"


def _timestamp(mode: str, digits: int, strict: bool) -> Temporal:
    if mode == "connect":
        return _semantic("int64", "org.apache.kafka.connect.data.Timestamp", timestamp_ms, 0)
    if mode == "nanoseconds":
        return _semantic("int64", "io.debezium.time.NanoTimestamp", lambda text: timestamp_ns(text, strict), 0)
    if mode.startswith("adaptive") and digits <= 3:
        return _semantic("int64", "io.debezium.time.Timestamp", timestamp_ms, 0)
    return _semantic("int64", "io.debezium.time.MicroTimestamp", timestamp_us, 0)


def _coarser(fine: pa.Array, divisor: int) -> pa.Array:
    """Coarser units, rounded towards the past as Java's floorDiv does."""
    floored = np.floor_divide(pc.fill_null(fine, 0).to_numpy(zero_copy_only=False), divisor)
    return pa.array(floored, mask=_nulls(fine))


def _nulls(array: pa.Array) -> np.ndarray | None:
    return pc.is_null(array).to_numpy(zero_copy_only=False) if array.null_count else None


def _by_form(
    text: pa.Array, plain: Callable[[pa.Array], pa.Array], odd: Callable[[str], object], arrow: pa.DataType
) -> pa.Array:
    """Convert plain values together and odd ones one by one; `plain` raises ArrowInvalid when there is an odd one."""
    try:
        return plain(text)
    except pa.ArrowInvalid:
        return _mixed(text, plain, odd, arrow)


def _mixed(
    text: pa.Array, plain: Callable[[pa.Array], pa.Array], odd: Callable[[str], object], arrow: pa.DataType
) -> pa.Array:
    regular = pc.match_substring_regex(text, _PLAIN)
    kept = plain(pc.if_else(regular, text, pa.scalar(None, text.type)))
    values = kept.to_pylist()
    for row in np.flatnonzero(~pc.fill_null(regular, True).to_numpy(zero_copy_only=False)).tolist():
        values[row] = odd(text[row].as_py())
    return pa.array(values, arrow)


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


def _epoch_day(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01, proleptic Gregorian, whatever the year: every 400 years have 146,097 days."""
    cycles, within = divmod(year - 2000, 400)
    return date(2000 + within, month, day).toordinal() - 719_163 + cycles * 146_097


def days(text: pa.Array) -> pa.Array:
    """DATE as days since 1970."""

    def odd(value: str) -> int:
        return INFINITY_DAYS[value] if value in INFINITY_DAYS else _epoch_day(*_astronomical(value)[:3])

    return _by_form(text, lambda plain: pc.cast(pc.cast(plain, pa.date32()), pa.int32()), odd, pa.int32())


def timestamp_us(text: pa.Array) -> pa.Array:
    """TIMESTAMP as microseconds since 1970, read as UTC."""
    return _timestamps(text, 1)


def timestamp_ms(text: pa.Array) -> pa.Array:
    """TIMESTAMP as milliseconds since 1970, read as UTC."""
    return _timestamps(text, 1000)


def _timestamps(text: pa.Array, unit_us: int) -> pa.Array:
    def plain(values: pa.Array) -> pa.Array:
        micros = pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64())
        return micros if unit_us == 1 else _coarser(micros, unit_us)

    def odd(value: str) -> int:
        if value in INFINITY_US:
            return INFINITY_US[value] // unit_us
        year, month, day, micros = _astronomical(value)
        # Microseconds in an int64 end in January 294247, PostgreSQL's timestamps in December 294276.
        return min((_epoch_day(year, month, day) * DAY_US + micros) // unit_us, LARGEST)

    return _by_form(text, plain, odd, pa.int64())


def timestamp_ns(text: pa.Array, strict: bool) -> pa.Array:
    """TIMESTAMP as nanoseconds since 1970, infinity as the outermost int64.

    What int64 cannot hold is null, with a warning, or raises DecodeError if `strict`.
    """
    micros = timestamp_us(text)
    highest = pc.equal(micros, INFINITY_US["infinity"])
    lowest = pc.equal(micros, INFINITY_US["-infinity"])
    finite = pc.if_else(pc.or_(highest, lowest), 0, micros)
    far = pc.or_(pc.greater(finite, LARGEST // 1000), pc.less(finite, -(LARGEST // 1000)))
    if pc.any(far).as_py():
        if strict:
            raise DecodeError(
                "a timestamp lies outside 1677-09-21 to 2262-04-11", remedy="set time.precision.mode to microseconds"
            )
        log.warning("%d timestamps outside 1677 to 2262 have no nanoseconds and become null", pc.sum(far).as_py())
        finite = pc.if_else(far, pa.scalar(None, pa.int64()), finite)
    nanos = pc.multiply_checked(finite, 1000)
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
    return pc.cast(_coarser(time_us(text), 1000), pa.int32())


def _zoned_zero(digits: int) -> str:
    return "1970-01-01T00:00:00" + ("." + "0" * digits if digits else "") + "Z"


_PLAIN_ZONED = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$"


def zoned_text(text: pa.Array, digits: int) -> pa.Array:
    """TIMESTAMPTZ (printed in UTC) as ISO-8601 with `Z` and exactly `digits` digits of fraction."""
    date_part = pc.utf8_slice_codeunits(text, 0, 10)
    time_part = pc.utf8_slice_codeunits(text, 11, 19)
    pieces = [date_part, "T", time_part]
    if digits:
        fraction = pc.utf8_rtrim(pc.utf8_slice_codeunits(text, 20, 27), "+0")
        pieces += [".", pc.utf8_slice_codeunits(pc.ascii_rpad(fraction, digits, "0"), 0, digits)]
    return _patched(text, join(*pieces, "Z"), _PLAIN_ZONED, lambda value: _odd_zoned(value, digits))


def _patched(text: pa.Array, plain: pa.Array, pattern: str, odd: Callable[[str], str]) -> pa.Array:
    """`plain`, the texts converted together, with those that do not match the pattern converted one by one."""
    regular = pc.match_substring_regex(text, pattern)
    if pc.all(regular, min_count=0).as_py():
        return plain
    values = plain.to_pylist()
    for row in np.flatnonzero(~pc.fill_null(regular, True).to_numpy(zero_copy_only=False)).tolist():
        values[row] = odd(text[row].as_py())
    return pa.array(values, pa.string())


def _odd_zoned(value: str, digits: int) -> str:
    if value in INFINITY_US:
        return value
    day, clock, micros = _shown(value)
    return f"{day}T{clock}" + (f".{micros:06d}"[: digits + 1] if digits else "") + "Z"


def _shown(value: str) -> tuple[str, str, int]:
    """Date (as ISO-8601 has it, other years than four digits signed), time and microsecond of an odd value."""
    year, month, day, micros = _astronomical(value)
    seconds, fraction = divmod(micros, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    shown = f"+{year}" if year > 9999 else f"{year:05d}" if year < 0 else f"{year:04d}"
    return f"{shown}-{month:02d}-{day:02d}", clock, fraction


_ZONE = r"^(?P<clock>[\d:.]+)(?P<sign>[+-])(?P<hours>\d\d)(?::(?P<minutes>\d\d))?(?::(?P<seconds>\d\d))?$"


def zoned_time_text(text: pa.Array) -> pa.Array:
    """TIMETZ moved to UTC, `11:51:30.123789Z`, with no more digits of fraction than it needs."""
    parts = pc.extract_regex(text, _ZONE)
    if parts.null_count != text.null_count:
        raise DecodeError("a TIMETZ value is not in ISO output")
    clock = time_us(pc.struct_field(parts, "clock"))
    offset = _seconds(parts)
    shifted = pc.subtract(clock, pc.multiply(offset, 1_000_000)).to_numpy(zero_copy_only=False)
    # 24:00 at UTC stays 24:00.
    midnight = pc.and_(pc.equal(clock, DAY_US), pc.equal(offset, 0))
    nulls = _nulls(text)
    within = np.mod(np.nan_to_num(shifted).astype(np.int64), DAY_US)
    printed = pc.cast(pa.array(within, mask=nulls).cast(pa.time64("us")), pa.string())
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(printed, "0"), ".")
    # Only the fraction loses its zeros, never the seconds.
    whole = pc.ends_with(printed, ".000000")
    clean = pc.if_else(whole, pc.utf8_slice_codeunits(printed, 0, 8), trimmed)
    return join(pc.if_else(midnight, literal("24:00:00"), clean), "Z")


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


def _iso(name: str) -> Temporal:
    if name == "date":
        return _semantic("string", "io.debezium.time.IsoDate", _iso_date, "1970-01-01Z")
    if name == "time":
        return _semantic("string", "io.debezium.time.IsoTime", _iso_time, "00:00:00Z")
    return _semantic("string", "io.debezium.time.IsoTimestamp", _iso_timestamp, "1970-01-01T00:00:00Z")


def _iso_date(text: pa.Array) -> pa.Array:
    def odd(value: str) -> str:
        return _INFINITY_DATES[value] if value in _INFINITY_DATES else f"{_shown(value)[0]}Z"

    return _patched(text, join(text, "Z"), _PLAIN, odd)


def _iso_time(text: pa.Array) -> pa.Array:
    return join(pc.if_else(pc.equal(text, literal("24:00:00")), literal("00:00:00"), text), "Z")


def _iso_timestamp(text: pa.Array) -> pa.Array:
    def odd(value: str) -> str:
        if value in _INFINITY_STAMPS:
            return _INFINITY_STAMPS[value]
        day, clock, micros = _shown(value)
        return f"{day}T{clock}" + (f".{micros:06d}".rstrip("0") if micros else "") + "Z"

    return _patched(text, join(pc.replace_substring(text, " ", "T"), "Z"), _PLAIN, odd)


_INFINITE = ("infinity", "-infinity")
_INTERVAL = (
    r"^P(?:(?P<years>-?\d+)Y)?(?:(?P<months>-?\d+)M)?(?:(?P<days>-?\d+)D)?"
    r"(?:T(?:(?P<hours>-?\d+)H)?(?:(?P<minutes>-?\d+)M)?(?:(?P<seconds>-?[\d.]+)S)?)?$"
)


def _interval(mode: str, faults: bool) -> Temporal:
    """Infinities are the outermost values; with `faults` zero, as the reference engine's driver reads them."""
    if mode == "string":
        nothing = "P0Y0M0DT0H0M0S"
        convert = _infinite(interval_text, *((nothing, nothing) if faults else _INFINITE))
        return _semantic("string", "io.debezium.time.Interval", convert, nothing)
    convert = _infinite(interval_us, *((0, 0) if faults else (LARGEST, SMALLEST)))
    return _semantic("int64", "io.debezium.time.MicroDuration", convert, 0)


def _infinite(
    finite: Callable[[pa.Array], pa.Array], highest: object, lowest: object
) -> Callable[[pa.Array], pa.Array]:
    """A conversion of INTERVAL that knows its infinities, which came with PostgreSQL 17."""

    def convert(text: pa.Array) -> pa.Array:
        is_highest, is_lowest = (pc.equal(text, literal(printed)) for printed in _INFINITE)
        if not pc.any(pc.or_(is_highest, is_lowest)).as_py():
            return finite(text)
        rest = finite(pc.if_else(pc.or_(is_highest, is_lowest), pa.scalar(None, text.type), text))
        return pc.if_else(is_highest, highest, pc.if_else(is_lowest, lowest, rest))

    return convert


def _interval_parts(text: pa.Array) -> dict[str, pa.Array]:
    parts = pc.extract_regex(text, _INTERVAL)
    if parts.null_count != text.null_count:
        raise DecodeError("an INTERVAL value is not in ISO 8601 output")
    names = ("years", "months", "days", "hours", "minutes", "seconds")
    pieces = {name: pc.struct_field(parts, name) for name in names}
    return {name: pc.if_else(pc.equal(piece, literal("")), literal("0"), piece) for name, piece in pieces.items()}


def interval_us(text: pa.Array) -> pa.Array:
    """INTERVAL as microseconds, a month being 365.25 / 12 days; in doubles and cut, as the reference engine does."""
    years, months, days, hours, minutes, read = (
        pc.fill_null(pc.cast(piece, pa.float64()), 0).to_numpy(zero_copy_only=False)
        for piece in _interval_parts(text).values()
    )
    seconds = np.trunc(read)
    seconds += np.rint((read - seconds) * 1e6) / 1e6
    days = (years * 12 + months) * (365.25 / 12) + days
    micros = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1e6
    # The largest double below 2^63 is 2^63 - 1024.
    values = np.clip(micros, -(2.0**63), 2.0**63 - 1024).astype(np.int64)
    values[micros >= 2.0**63] = LARGEST
    return pa.array(values, mask=_nulls(text))


def interval_text(text: pa.Array) -> pa.Array:
    """INTERVAL as `P1Y2M3DT4H5M6.789S`, every part present."""
    parts = _interval_parts(text)
    pieces = ["P", parts["years"], "Y", parts["months"], "M", parts["days"], "DT"]
    pieces += [parts["hours"], "H", parts["minutes"], "M", parts["seconds"], "S"]
    return join(*pieces)
