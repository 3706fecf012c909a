"""Reads texts that a server or a replica prints: arrays, intervals, dates and times; each has one normal form."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

_ARRAY = re.compile(r'\s*([{},])\s*|"((?:[^"\\]|\\.)*)"|((?:[^\s{},"\\]|\\.|\s(?![{},\s]))+)')
_BOUNDS = re.compile(r"(?:\[-?\d+:-?\d+\])+=")
_MOMENT = re.compile(
    r"(?P<year>[+-]?\d{4,})-(?P<day>\d\d-\d\d)(?:[ T](?P<time>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d+))?)?"
    r"(?: ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?))?(?P<era> BC)?"
)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:(Z)|([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?")
_PERIOD = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d+))?S)?)?"
)
_DAY_US = 86_400_000_000
# Debezium's average month of 30.4375 days.
_MONTH_US = 2_629_800_000_000

Nested = list[Any]


def array(text: str) -> Nested:
    """The elements of an array's literal, `{a,"b c",NULL,{...}}`: texts, None and lists."""
    stack: list[Nested] = [[]]
    for sign, quoted, plain in _ARRAY.findall(_BOUNDS.sub("", text)):
        if sign == "{":
            stack.append([])
        elif sign == "}":
            done = stack.pop()
            stack[-1].append(done)
        elif plain:
            stack[-1].append(None if plain.upper() == "NULL" else _unescaped(plain))
        elif not sign:
            stack[-1].append(_unescaped(quoted))
    (found,) = stack[0]
    return list(found)


def is_array(text: str) -> bool:
    """Whether a text is an array's literal, and no JSON."""
    return text.startswith("{") or _BOUNDS.match(text) is not None


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def moment(text: str) -> str:
    """A date, or a date with time, in ISO 8601: `-0043-03-15T12:00:00.5`; odd years have a sign, microseconds are kept.

    One with an offset is moved to UTC.
    """
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        return text  # infinity
    year = int(found["year"])
    year = 1 - year if found["era"] else year
    if found["time"] is None:
        return f"{_year(year)}-{found['day']}"
    clock = found["time"] if found["time"].count(":") == 2 else f"{found['time']}:00"
    day = found["day"]
    if (zone := found["zone"] or "Z") != "Z" and set(zone[1:]) - {"0", ":"}:
        offset = f"{zone[:3]}:{zone[3:].strip(':') or '00'}"
        moved = datetime.fromisoformat(f"{year:04d}-{day}T{clock}{offset}").astimezone(timezone.utc)
        year, day, clock = moved.year, f"{moved:%m-%d}", f"{moved:%H:%M:%S}"
    fraction = (found["fraction"] or "")[:6].rstrip("0")
    return f"{_year(year)}-{day}T{clock}{'.' if fraction else ''}{fraction}"


def _year(year: int) -> str:
    return f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"


def clock(text: str) -> str:
    """A time of day with microseconds; one with an offset in UTC, with a Z."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return text
    hours, minutes, seconds, fraction, utc, sign, *offset = found.groups()
    micros = int((fraction or "").ljust(6, "0")[:6])
    micros += 1_000_000 * (3600 * int(hours) + 60 * int(minutes) + int(seconds or 0))
    if sign is not None:
        apart = sum(int(part or 0) * unit for part, unit in zip(offset, (3600, 60, 1), strict=True)) * 1_000_000
        micros = (micros - apart if sign == "+" else micros + apart) % _DAY_US
    whole, micros = divmod(micros, 1_000_000)
    shown = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{micros:06d}"
    return f"{shown}Z" if utc or sign else shown


def period(text: str) -> tuple[int, int, int]:
    """Months, days and microseconds of an interval in ISO 8601. Raises ValueError for an infinite one."""
    found = _PERIOD.fullmatch(text)
    if found is None:
        raise ValueError(text)
    years, months, weeks, days, hours, minutes = (int(part or 0) for part in found.groups()[:6])
    sign, seconds, fraction = found.groups()[6:]
    micros = int(seconds or 0) * 1_000_000 + int((fraction or "").ljust(6, "0")[:6])
    micros = -micros if sign else micros
    return 12 * years + months, 7 * weeks + days, (3600 * hours + 60 * minutes) * 1_000_000 + micros


def microseconds(text: str) -> int:
    """An interval in ISO 8601 as microseconds, by average months; an infinite one is the outermost number."""
    if text.endswith("infinity"):
        return -(2**63) if text.startswith("-") else 2**63 - 1
    months, days, micros = period(text)
    return min(max(months * _MONTH_US + days * _DAY_US + micros, -(2**63)), 2**63 - 1)
