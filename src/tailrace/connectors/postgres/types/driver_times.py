"""Dates, and times in arrays, as the reference engine's driver (pgjdbc) reads them, for `compat.faults`.

It passes them through Java's calendar, which is Julian before 1582-10-15, has milliseconds and knows no 24:00.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

_BEFORE_1583 = r"^(0\d{3}|1[0-4]\d\d|15[0-7]\d|158[0-2])-| BC$"
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(.*?)( BC)?")
_SKIPPED_DAY = re.compile(r"1582-10-(0[5-9]|1[0-4])")
_INFINITY, _FIRST_MOMENT = "-infinity", "292269055-12-02 23:00:00+00"
_FIRST_GREGORIAN = (1582, 10, 15)
# Days between day 0 of the Julian day numbers and day 0 of datetime's ordinals.
_ORDINAL = 1721425
# Days of 400 years, by which a date moves into the years that datetime knows.
_ERA_YEARS, _ERA_DAYS = 400, 146097


def date_as_read(text: pa.Array) -> pa.Array:
    """The text of dates without their era, and past the days that Java's calendar skips; infinities as they are."""
    shown = pc.replace_substring(text, " BC", "")
    shown = pc.replace_substring_regex(shown, "^1582-10-1([0-4])$", r"1582-10-2\1")
    return pc.replace_substring_regex(shown, "^1582-10-0([5-9])$", r"1582-10-1\1")


def as_read_from_arrays(name: str, text: pa.Array) -> pa.Array:
    """The text of values of the type `name` that ISO conversions turn into what the driver reads."""
    return _READ[name](text) if name in _READ else text


def _time(text: pa.Array) -> pa.Array:
    text = pc.replace_substring_regex(text, r"(\.\d{3})\d+", r"\1")
    return pc.replace_substring_regex(text, "^24:", "00:")


def _zoned_time(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, r"\.\d+", "")


def _timestamp(text: pa.Array) -> pa.Array:
    return _old(text, _from_julian)


def _zoned_timestamp(text: pa.Array) -> pa.Array:
    text = pc.if_else(pc.equal(text, _INFINITY), _FIRST_MOMENT, text)
    return _old(text, lambda value: _SKIPPED_DAY.sub(_later, value).removesuffix(" BC"))


def _old(text: pa.Array, change: Callable[[str], str]) -> pa.Array:
    """`text` with its values before 1583 changed, each different one once."""
    is_old = pc.fill_null(pc.match_substring_regex(text, _BEFORE_1583), False)
    if not is_old.true_count:
        return text
    distinct = text.filter(is_old).dictionary_encode()
    changed = pa.array([change(value) for value in distinct.dictionary.to_pylist()], text.type)
    return pc.replace_with_mask(text, is_old, changed.take(distinct.indices))


def _later(match: re.Match[str]) -> str:
    """A day that Java's calendar skips, ten days later."""
    return f"1582-10-{int(match[1]) + 10}"


def _from_julian(value: str) -> str:
    """A date of the Julian calendar in that of ISO 8601; one from 1582-10-15 on as it is."""
    match = _DATE.fullmatch(value)
    assert match is not None, value
    year, month, day = (int(part) for part in match.groups()[:3])
    if match[5]:
        year = 1 - year
    elif (year, month, day) >= _FIRST_GREGORIAN:
        return value
    # Julian day number (Meeus, "Astronomical Algorithms", 7), in whole days.
    since_march, months = (year - 1, month + 12) if month < 3 else (year, month)
    number = 1461 * (since_march + 4716) // 4 + 306001 * (months + 1) // 10000 + day - 1524
    eras = 20
    moved = datetime.date.fromordinal(number - _ORDINAL + eras * _ERA_DAYS)
    year = moved.year - eras * _ERA_YEARS
    shown, era = (1 - year, " BC") if year <= 0 else (year, "")
    return f"{shown:04}-{moved.month:02}-{moved.day:02}{match[4]}{era}"


_READ: dict[str, Callable[[pa.Array], pa.Array]] = {
    "time": _time,
    "timetz": _zoned_time,
    "timestamp": _timestamp,
    "timestamptz": _zoned_timestamp,
}
