"""Dates and times under `time.precision.mode`: their schemas and units, and conversions over Arrow columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import TIME_PRECISION_MODE
from tailrace.connectors.lost_values import became_null
from tailrace.connectors.value_type import Convert, ValueType, is_native
from tailrace.errors import DecodeError
from tailrace.model.schema import ConnectSchema

DAY_US = 86_400_000_000
LARGEST, SMALLEST = 2**63 - 1, -(2**63)

# The units in which values are shown. ISO is text.
DAYS, MILLIS, MICROS, NANOS, ISO = "days", "ms", "us", "ns", "iso"


STRUCTURED = "structured"

_DIGITS, _ORDINALS = {MILLIS: 3}, {3: "third", 6: "sixth"}


@dataclass(frozen=True, slots=True)
class TimeForm:
    """How dates or times are shown: schema, unit, and the JSON value that stands for zero."""

    schema: ConnectSchema
    unit: str
    zero: object

    def read_by(self, convert: Convert, digits: int = 0) -> ValueType:
        """The type of a column whose form `convert` makes into values of the unit; they have so many of a second."""
        arrow = {"int32": pa.int32(), "int64": pa.int64(), "string": pa.string()}[self.schema.type]
        is_text = self.unit == ISO and not str(self.schema.name).endswith("ZonedTimestamp")
        # Tables have microseconds.
        kept = digits if is_text else _DIGITS.get(self.unit, 6)
        loses = f"digits of a second behind the {_ORDINALS[kept]}" if digits > kept else None
        return ValueType(self.schema, arrow, convert, self.zero, loses=loses)


def _debezium(connect: str, name: str, unit: str, zero: object = 0) -> TimeForm:
    return TimeForm(ConnectSchema(connect, name=f"io.debezium.time.{name}", version=1), unit, zero)


def _kafka(connect: str, name: str, unit: str) -> TimeForm:
    return TimeForm(ConnectSchema(connect, name=f"org.apache.kafka.connect.data.{name}", version=1), unit, 0)


def precision_mode(config: Config) -> str:
    """`time.precision.mode` of rows. Those that become native types are of full precision in any mode."""
    return "adaptive" if is_native(config) else config[TIME_PRECISION_MODE]


def date_form(mode: str) -> TimeForm:
    """Dates under a `time.precision.mode`."""
    if mode == "isostring":
        return _debezium("string", "IsoDate", ISO, "1970-01-01Z")
    return _kafka("int32", "Date", DAYS) if mode == "connect" else _debezium("int32", "Date", DAYS)


def time_form(mode: str, digits: int) -> TimeForm:
    """Times of day with so many digits after the second's point, under a `time.precision.mode`."""
    if mode == "isostring":
        return _debezium("string", "IsoTime", ISO, "00:00:00Z")
    if mode == "connect":
        return _kafka("int32", "Time", MILLIS)
    if mode == "nanoseconds" or (mode == "adaptive" and digits > 6):
        return _debezium("int64", "NanoTime", NANOS)
    if mode == "adaptive" and digits <= 3:
        return _debezium("int32", "Time", MILLIS)
    return _debezium("int64", "MicroTime", MICROS)


def timestamp_form(mode: str, digits: int, *, keeps_all: bool = False) -> TimeForm:
    """Timestamps without a zone, with so many digits after the second's point, under a `time.precision.mode`.

    `keeps_all`: no nanoseconds, which end in the year 2262; tables have microseconds.
    """
    if mode == "isostring":
        return _debezium("string", "IsoTimestamp", ISO, "1970-01-01T00:00:00Z")
    if mode == "connect":
        return _kafka("int64", "Timestamp", MILLIS)
    is_adaptive = mode.startswith("adaptive")
    if (mode == "nanoseconds" or (is_adaptive and digits > 6)) and not keeps_all:
        return _debezium("int64", "NanoTimestamp", NANOS)
    if is_adaptive and digits <= 3:
        return _debezium("int64", "Timestamp", MILLIS)
    return _debezium("int64", "MicroTimestamp", MICROS)


def zoned_timestamp_form(digits: int) -> TimeForm:
    """Timestamps with a zone, which are text in every mode; `digits` of the second's fraction are always shown."""
    fraction = "." + "0" * digits if digits else ""
    return _debezium("string", "ZonedTimestamp", ISO, f"1970-01-01T00:00:00{fraction}Z")


def zoned_time_form() -> TimeForm:
    """Times with a zone, which are text in every mode. Their defaults are not shown."""
    return _debezium("string", "ZonedTime", ISO, None)


def nulls_of(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Where an array is null, None if it is nowhere."""
    if not array.null_count:
        return None
    flags: npt.NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return flags


def coarser(fine: pa.Array, divisor: int) -> pa.Array:
    """Coarser units, rounded towards the past as Java's floorDiv does."""
    floored = np.floor_divide(pc.fill_null(fine, 0).to_numpy(zero_copy_only=False), divisor)
    return pa.array(floored, mask=nulls_of(fine))


def nanoseconds(micros: pa.Array, strict: bool) -> pa.Array:
    """Microseconds since 1970 as nanoseconds.

    A value that int64 cannot hold becomes null, with a warning, or raises DecodeError if `strict`.
    """
    far = pc.or_(pc.greater(micros, LARGEST // 1000), pc.less(micros, -(LARGEST // 1000)))
    if pc.any(far).as_py():
        if strict:
            raise DecodeError(
                "a timestamp lies outside 1677-09-21 to 2262-04-11", remedy="set time.precision.mode to microseconds"
            )
        became_null(pc.sum(far).as_py(), "timestamps outside 1677 to 2262, which have no nanoseconds,")
        micros = pc.if_else(far, pa.scalar(None, pa.int64()), micros)
    return pc.multiply_checked(micros, 1000)


def epoch_day(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for any year: 400 years have 146,097 days."""
    cycles, within = divmod(year - 2000, 400)
    return date(2000 + within, month, day).toordinal() - 719_163 + cycles * 146_097


def iso_date(year: int, month: int, day: int) -> str:
    """A date as ISO-8601 has it: years of other than four digits have a sign."""
    shown = f"+{year}" if year > 9999 else f"{year:05d}" if year < 0 else f"{year:04d}"
    return f"{shown}-{month:02d}-{day:02d}"


def clock(micros: int) -> tuple[str, int]:
    """`hh:mm:ss` of a microsecond of the day, and the microseconds left over."""
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}", fraction


def clock_text(micros: pa.Array) -> pa.Array:
    """Microseconds of the day as `hh:mm:ss` with no more digits of fraction than it needs."""
    printed = pc.cast(micros.cast(pa.time64("us")), pa.string())
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(printed, "0"), ".")
    # Only the fraction loses its zeros, never the seconds.
    whole = pc.ends_with(printed, ".000000")
    return pc.if_else(whole, pc.utf8_slice_codeunits(printed, 0, 8), trimmed)


def with_odd_values(
    text: pa.Array, plain: Convert, pattern: str, odd: Callable[[str], object], arrow: pa.DataType
) -> pa.Array:
    """Convert values of plain form together and the others one by one.

    `plain` raises ArrowInvalid if there is a value of another form; values of plain form match `pattern`.
    """
    try:
        return plain(text)
    except pa.ArrowInvalid:
        regular = pc.match_substring_regex(text, pattern)
        kept = plain(pc.if_else(regular, text, pa.scalar(None, text.type)))
        return _replaced(text, kept, regular, odd, arrow)


def patched(text: pa.Array, plain: pa.Array, pattern: str, odd: Callable[[str], str]) -> pa.Array:
    """`plain` (texts that were converted together) with values that do not match `pattern` converted one by one."""
    regular = pc.match_substring_regex(text, pattern)
    if pc.all(regular, min_count=0).as_py():
        return plain
    return _replaced(text, plain, regular, odd, pa.string())


def _replaced(
    text: pa.Array, plain: pa.Array, regular: pa.Array, odd: Callable[[str], object], arrow: pa.DataType
) -> pa.Array:
    values = plain.to_pylist()
    for row in np.flatnonzero(~pc.fill_null(regular, True).to_numpy(zero_copy_only=False)).tolist():
        values[row] = odd(text[row].as_py())
    return pa.array(values, arrow)
