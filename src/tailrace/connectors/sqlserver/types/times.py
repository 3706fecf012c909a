"""Converts dates and times from ISO text with up to seven fractional digits to Connect's integers and texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.types import structured, temporal
from tailrace.connectors.types.temporal import DAYS, ISO, LARGEST, MICROS, MILLIS, NANOS, STRUCTURED
from tailrace.connectors.value_type import Binary, Convert, ValueType, is_strict, keeps_all
from tailrace.errors import DecodeError
from tailrace.model.arrow import join, literal

TYPES = ("date", "time", "datetime", "datetime2", "smalldatetime", "datetimeoffset")
_TEXT = {
    "date": "CONVERT(varchar(10), {}, 23)",
    "time": "CONVERT(varchar(16), {}, 121)",
    "datetime": "CONVERT(varchar(27), CAST({} AS datetime2(3)), 121)",
    "smalldatetime": "CONVERT(varchar(27), CAST({} AS datetime2(0)), 121)",
    "datetime2": "CONVERT(varchar(27), {}, 121)",
    "datetimeoffset": "CONVERT(varchar(34), {}, 121)",
}
_TICKS_A_SECOND, _TICK_NS = 10_000_000, 100
_DAY_TICKS = 86_400 * _TICKS_A_SECOND
_DIGITS = 7
# The driver's dates and times have microseconds, and no offset.
_DRIVERS_DIGITS = 6


def temporal_type(name: str, scale: int, config: Config) -> ValueType:
    """A column of one of TYPES under `time.precision.mode`; `scale` is its digits of fraction."""
    mode = temporal.precision_mode(config)
    digits = {"datetime": 3, "smalldatetime": 0}.get(name, scale)
    if mode == STRUCTURED:
        return _structured_type(name, digits)
    convert: Convert
    if name == "datetimeoffset":
        zoned = temporal.zoned_timestamp_form(0).read_by(offset_text, digits)
        loses = " and ".join(each for each in ("its offset", zoned.loses) if each)
        kind = replace(zoned, text=_TEXT[name], loses=loses)
        return replace(kind, of_default=lambda text: offset_text(_completed(text, zoned=True)))
    if name == "date":
        form = temporal.date_form(mode)
        convert = {DAYS: _days, ISO: _iso_date}[form.unit]
    elif name == "time":
        form = temporal.time_form(mode, digits)
        convert = _TIMES[form.unit]
    else:
        form, strict = temporal.timestamp_form(mode, digits, keeps_all=keeps_all(config)), is_strict(config)
        convert = (lambda text: _nanoseconds(text, strict)) if form.unit == NANOS else _TIMESTAMPS[form.unit]
    of_default = None if name in ("date", "time") else (lambda text: convert(_completed(text)))
    return replace(
        form.read_by(convert, 0 if name == "date" else digits),
        text=_TEXT[name],
        binary=_binary(name, digits, convert),
        of_default=of_default,
    )


def _binary(name: str, digits: int, convert: Convert) -> Binary | None:
    """The driver's own values, where these have all digits."""
    is_exact = name == "date" or digits <= _DRIVERS_DIGITS
    return Binary("{}", lambda values: convert(pc.cast(values, pa.string()))) if is_exact else None


def _structured_type(name: str, digits: int) -> ValueType:
    """A column of one of TYPES under time.precision.mode=structured."""

    def moments(text: pa.Array) -> pa.StructArray:
        days, ticks = structured.split_days(_ticks(text), _DAY_TICKS)
        return structured.timestamps(days, pc.multiply(ticks, _TICK_NS), digits)

    def clocks(text: pa.Array) -> pa.StructArray:
        return structured.times(pc.multiply(_of_day(text), _TICK_NS), digits)

    def dates(text: pa.Array) -> pa.StructArray:
        return structured.dates(_days(text))

    if name == "datetimeoffset":
        zoned = structured.structured_type(structured.ZONED_TIMESTAMP, lambda text: _zoned(text, digits), digits)
        return replace(zoned, text=_TEXT[name])
    kinds: dict[str, tuple[str, Convert]] = {"date": (structured.DATE, dates), "time": (structured.TIME, clocks)}
    kind, convert = kinds.get(name, (structured.TIMESTAMP, moments))
    structured_kind = structured.structured_type(kind, convert, digits)
    return replace(structured_kind, text=_TEXT[name], binary=_binary(name, digits, convert))


def _zoned(text: pa.Array, digits: int) -> pa.StructArray:
    """DATETIMEOFFSET by the parts of its own clock, and its offset."""
    parts = _offset_parts(text)
    day, clock, fraction, offset = (pc.struct_field(parts, name) for name in ("day", "time", "digits", "offset"))
    days, ticks = structured.split_days(_ticks(join(day, " ", clock, fraction)), _DAY_TICKS)
    hours, minutes = (pc.cast(pc.utf8_slice_codeunits(offset, at, at + 2), pa.int32()) for at in (1, 4))
    seconds = pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60))
    signed = pc.if_else(pc.starts_with(offset, "-"), pc.negate(seconds), seconds)
    return structured.zoned_timestamps(days, pc.multiply(ticks, _TICK_NS), signed, digits)


# As the server's PARSE reads them in us_english, the language of a login without another one.
_MONTH_FIRST = re.compile(r"^(\d{1,2})/(\d{1,2})/(\d{4})(?=$|[ T])")
_HALF_DAY = re.compile(r"(?<!\d)(\d{1,2})(:\d\d(?::\d\d(?:\.\d+)?)?)? ?([AP])M$", re.IGNORECASE)
_DAY = re.compile(r"^\d{4}-\d\d-\d\d")


def default_text(text: str, name: str) -> str:
    """A default of a date or time as ISO has it: `1/31/1900 1:30 PM` is `1900-01-31 13:30`.

    A time of day is taken from a DATE, a day from a TIME. (SqlServerDefaultValueConverter has the server parse it.)
    """
    text = _MONTH_FIRST.sub(lambda match: f"{match[3]}-{int(match[1]):02}-{int(match[2]):02}", text.strip())
    text = _HALF_DAY.sub(lambda match: f"{int(match[1]) % 12 + 12 * (match[3] in 'pP'):02}{match[2] or ':00'}", text)
    day = _DAY.match(text)
    if day is None or name not in ("date", "time"):
        return text
    return day[0] if name == "date" else text[day.end() :].lstrip(" T") or "00:00"


def _completed(text: pa.Array, *, zoned: bool = False) -> pa.Array:
    """A timestamp with what a default may leave out of it: seconds, the time of day, the offset."""
    for pattern, missing in ((r"^(\d{4}-\d\d-\d\d)$", " 00:00"), (r"^(.*[ T]\d\d:\d\d)$", ":00")):
        text = pc.replace_substring_regex(text, pattern, rf"\1{missing}")
    return pc.replace_substring_regex(text, r"^([^:]*:[\d:.]+)$", r"\1 +00:00") if zoned else text


def _ticks(text: pa.Array) -> pa.Array:
    """Seconds and fraction (`... hh:mm:ss.fffffff`) as seconds since 1970 times ten million, as two columns' sum."""
    seconds, fraction = _split(text)
    whole = pc.cast(pc.cast(seconds, pa.timestamp("s")), pa.int64())
    return pc.add(pc.multiply(whole, _TICKS_A_SECOND), fraction)


def _split(text: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The text up to the seconds, and the fraction in units of 100 ns."""
    point = pc.find_substring(text, ".")
    if pc.max(point).as_py() in (None, -1):
        return text, pc.cast(pc.if_else(text.is_valid(), 0, None), pa.int64())
    at = int(pc.max(point).as_py())
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(text, at + 1, at + 1 + _DIGITS), _DIGITS, "0")
    fraction = pc.cast(pc.if_else(pc.equal(digits, literal("")), literal("0"), digits), pa.int64())
    return pc.utf8_slice_codeunits(text, 0, at), fraction


def _days(text: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(text, pa.date32()), pa.int32())


def _iso_date(text: pa.Array) -> pa.Array:
    return join(text, "Z")


def _of_day(text: pa.Array) -> pa.Array:
    """100 ns of the day."""
    return _ticks(join("1970-01-01 ", text))


def _coarse(read: Callable[[pa.Array], pa.Array], divisor: int, arrow: pa.DataType) -> Convert:
    return lambda text: pc.cast(temporal.coarser(read(text), divisor), arrow)


def _iso_time(text: pa.Array) -> pa.Array:
    return join(_without_zeros(_with_seconds(text)), "Z")


def _iso_timestamp(text: pa.Array) -> pa.Array:
    return join(_without_zeros(_with_seconds(pc.replace_substring(text, " ", "T"))), "Z")


def _with_seconds(text: pa.Array) -> pa.Array:
    """The time with the seconds that a default may leave out."""
    return pc.replace_substring_regex(text, r"(^|T)(\d\d:\d\d)$", r"\1\2:00")


def _without_zeros(text: pa.Array) -> pa.Array:
    """The text with no more digits of fraction than it needs."""
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
    return pc.if_else(pc.match_substring(text, "."), trimmed, text)


def _nanoseconds(text: pa.Array, strict: bool) -> pa.Array:
    """Since 1970; what int64 cannot hold becomes null, or is an error."""
    ticks = _ticks(text)
    far = pc.greater(pc.abs(ticks), LARGEST // _TICK_NS)
    if pc.any(far).as_py():
        # Microseconds find the values that nanoseconds cannot hold, and tell of them.
        temporal.nanoseconds(temporal.coarser(ticks, 10), strict)
        ticks = pc.if_else(far, pa.scalar(None, pa.int64()), ticks)
    return pc.multiply(ticks, _TICK_NS)


def offset_text(text: pa.Array) -> pa.Array:
    """`2018-07-13 12:23:45.4560000 +11:00` as ISO has it, with its offset and as Java prints fractions.

    Raises DecodeError for another form.
    """
    parts = _offset_parts(text)
    digits = pc.utf8_rtrim(pc.utf8_rtrim(parts.field("digits"), "0"), ".")
    offset = parts.field("offset")
    zone = pc.if_else(pc.equal(offset, literal("+00:00")), literal("Z"), offset)
    shown = join(parts.field("day"), "T", parts.field("time"), digits, zone)
    return pc.if_else(text.is_valid(), shown, literal(None))


def _offset_parts(text: pa.Array) -> pa.StructArray:
    """Day, time, digits (with their point) and offset. Raises DecodeError for another form."""
    parts = pc.extract_regex(
        text, r"^(?P<day>[\d-]{10})[ T](?P<time>[\d:]{8})(?P<digits>\.\d+)? ?(?P<offset>[+-]\d\d:\d\d)$"
    )
    if parts.null_count != text.null_count:
        raise DecodeError("a DATETIMEOFFSET is not in ISO form")
    return parts


def moments(text: pa.Array) -> pa.Array:
    """`2018-07-13 12:23:45.456 +11:00` as microseconds since 1970 UTC."""
    zoned = pc.replace_substring_regex(text, r"(?:(\.\d{1,6})\d*)? ([+-]\d\d:\d\d)$", r"\1\2")
    return pc.cast(pc.cast(zoned, pa.timestamp("us", "UTC")), pa.int64())


_TIMES: dict[str, Convert] = {
    MILLIS: _coarse(_of_day, 10_000, pa.int32()),
    MICROS: _coarse(_of_day, 10, pa.int64()),
    NANOS: lambda text: pc.multiply(_of_day(text), _TICK_NS),
    ISO: _iso_time,
}
_TIMESTAMPS: dict[str, Convert] = {
    MILLIS: _coarse(_ticks, 10_000, pa.int64()),
    MICROS: _coarse(_ticks, 10, pa.int64()),
    ISO: _iso_timestamp,
}
