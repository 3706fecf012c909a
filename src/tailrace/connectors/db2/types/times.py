"""Converts dates and times from the driver's values to Connect's integers and texts, by columns."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.types import structured, temporal
from tailrace.connectors.types.temporal import DAY_US, DAYS, ISO, MICROS, NANOS, STRUCTURED, clock_text
from tailrace.connectors.value_type import Convert, ValueType, is_strict, keeps_all
from tailrace.model.arrow import join

TYPES = ("DATE", "TIME", "TIMESTAMP")
# The driver's timestamps end with microseconds; finer ones are read as text.
_DRIVER_DIGITS, _PRINTED = 6, "VARCHAR({})"
# `2018-06-20-15.13.16.945104123` and the like; what is finer than a nanosecond is cut.
_TEXT = r"^(?P<day>\d{4}-\d\d-\d\d)[-T ](?P<h>\d\d)[.:](?P<m>\d\d)[.:](?P<s>\d\d)(?:\.(?P<f>\d+))?\s*$"


def temporal_type(name: str, scale: int, config: Config) -> ValueType:
    """A column of one of TYPES under `time.precision.mode`; `scale` is its digits of fraction."""
    mode = temporal.precision_mode(config)
    if mode == STRUCTURED:
        return _structured_type(name, scale)
    if name == "DATE":
        form = temporal.date_form(mode)
        return form.read_by({DAYS: _days, ISO: _iso_date}[form.unit])
    if name == "TIME":
        form = temporal.time_form(mode, 0)
        return form.read_by(_of_day(form.unit))
    form = temporal.timestamp_form(mode, scale, keeps_all=keeps_all(config))
    kind = form.read_by(_timestamp(form.unit, is_strict(config)), scale)
    return kind if scale <= _DRIVER_DIGITS else replace(kind, text=_PRINTED)


def _structured_type(name: str, scale: int) -> ValueType:
    """A column of one of TYPES under time.precision.mode=structured."""

    def moments(values: pa.Array) -> pa.StructArray:
        micros, rest = _parts(values)
        days, of_day = structured.split_days(micros, DAY_US)
        return structured.timestamps(days, pc.add(pc.multiply(of_day, 1000), rest), scale)

    def clocks(values: pa.Array) -> pa.StructArray:
        return structured.times(_of_day(NANOS)(values), 0)

    if name == "DATE":
        return structured.structured_type(structured.DATE, lambda values: structured.dates(_days(values)))
    if name == "TIME":
        return structured.structured_type(structured.TIME, clocks, 0)
    kind = structured.structured_type(structured.TIMESTAMP, moments, scale)
    return kind if scale <= _DRIVER_DIGITS else replace(kind, text=_PRINTED)


def _days(values: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(values, pa.date32()), pa.int32())


def _iso_date(values: pa.Array) -> pa.Array:
    return join(pc.cast(pc.cast(values, pa.date32()), pa.string()), "Z")


def _of_day(unit: str) -> Convert:
    def convert(values: pa.Array) -> pa.Array:
        micros = pc.cast(_times(values), pa.int64())
        if unit == ISO:
            return join(clock_text(micros), "Z")
        if unit == NANOS:
            return pc.multiply(micros, 1000)
        return micros if unit == MICROS else pc.cast(temporal.coarser(micros, 1000), pa.int32())

    return convert


def _times(values: pa.Array) -> pa.Array:
    """Times of day; a default is text, with dots or colons."""
    if not pa.types.is_string(values.type):
        return pc.cast(values, pa.time64("us"))
    # Arrow reads a time with its day alone. 24:00:00 is 00:00:00, as IBM's JDBC driver has it.
    bare = pc.replace_substring_regex(pc.replace_substring(values, ".", ":"), "^24", "00")
    clock = join("1970-01-01 ", bare)
    return pc.cast(pc.cast(clock, pa.timestamp("us")), pa.time64("us"))


def _timestamp(unit: str, strict: bool) -> Convert:
    def convert(values: pa.Array) -> pa.Array:
        micros, rest = _parts(values)
        if unit == NANOS:
            return pc.add(temporal.nanoseconds(micros, strict), rest)
        if unit == ISO:
            return _iso(micros, rest)
        return micros if unit == MICROS else temporal.coarser(micros, 1000)

    return convert


def _parts(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Microseconds since 1970, and the nanoseconds that are left."""
    if not pa.types.is_string(values.type):
        return pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64()), pa.scalar(0, pa.int64())
    parts = pc.extract_regex(values, _TEXT)
    day, hours, minutes, ends, digits = (pc.struct_field(parts, name) for name in ("day", "h", "m", "s", "f"))
    fraction = pc.cast(pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, 9), 9, "0"), pa.int64())
    # 24:00:00 is the end of the day, which is the beginning of the next one.
    seconds = pc.cast(pc.cast(pc.cast(day, pa.date32()), pa.timestamp("s")), pa.int64())
    for part, unit in ((hours, 3600), (minutes, 60), (ends, 1)):
        seconds = pc.add(seconds, pc.multiply(pc.cast(part, pa.int64()), unit))
    micros = pc.add(pc.multiply(seconds, 1_000_000), pc.divide(fraction, 1000))
    return micros, pc.subtract(fraction, pc.multiply(pc.divide(fraction, 1000), 1000))


def _iso(micros: pa.Array, rest: pa.Array) -> pa.Array:
    """ISO text with no more digits of fraction than it needs."""
    seconds = temporal.coarser(micros, 1_000_000)
    fraction = pc.add(pc.multiply(pc.subtract(micros, pc.multiply(seconds, 1_000_000)), 1000), rest)
    digits = pc.utf8_lpad(pc.cast(fraction, pa.string()), 9, "0")
    whole = pc.replace_substring(pc.cast(pc.cast(seconds, pa.timestamp("s")), pa.string()), " ", "T")
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(join(whole, ".", digits), "0"), ".")
    return join(trimmed, "Z")
