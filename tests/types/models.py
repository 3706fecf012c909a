"""The expected event value, computed in plain Python from the server's description, without code of the connector."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np

Model = Callable[[str], Any]

_DAY_US = 86_400_000_000
_LONG = 2**63 - 1
# The reference engine's infinities.
_DAYS = {"infinity": -2_147_472_692, "-infinity": -2_147_472_691}
_MICROS = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
_ISO_DAYS = {"infinity": "-5877611-06-21Z", "-infinity": "-5877611-06-22Z"}
_ISO_STAMPS = {"infinity": "+294247-01-10T04:00:25.2Z", "-infinity": "-290308-12-21T19:59:27.6Z"}


def nothing(shown: str) -> None:
    """Always null."""


def float4(sent: str) -> float:
    """From the four bytes of float4send."""
    (value,) = struct.unpack(">f", bytes.fromhex(sent))
    return float(value)


def float8(sent: str) -> float:
    """From the eight bytes of float8send."""
    (value,) = struct.unpack(">d", bytes.fromhex(sent))
    return float(value)


# Numbers


def exact(scale: int) -> Model:
    """A decimal of a scale, null for what is no number."""
    return lambda shown: None if shown == "NaN" else Decimal(shown).quantize(Decimal(1).scaleb(-scale), context=_WIDE)


def unscaled(scale: int) -> Model:
    """The bytes of a decimal's unscaled value."""
    return lambda shown: None if shown == "NaN" else _big_endian(_shifted(shown, scale))


def variable(shown: str) -> dict[str, Any] | None:
    """Scale and bytes of the unscaled value, zeros after the point left out."""
    if "N" in shown or "I" in shown:
        return None
    fraction = shown.partition(".")[2].rstrip("0")
    return {"scale": len(fraction), "value": _big_endian(_shifted(shown, len(fraction)))}


def java_name(shown: str) -> str:
    """A decimal as text."""
    return {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}.get(shown, shown)


_WIDE = Context(prec=140_000)


def _shifted(shown: str, scale: int) -> int:
    return int(_WIDE.scaleb(Decimal(shown), scale))


def _big_endian(value: int) -> bytes:
    size = 1
    while not -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
        size += 1 if size < 64 else size // 2
    raw = value.to_bytes(size, "big", signed=True)
    while len(raw) > 1 and raw[0] == (255 if raw[1] > 127 else 0):
        raw = raw[1:]
    return raw


# Bytes and bits


def url_safe(shown: str) -> str:
    """Hex as URL-safe base64."""
    return base64.urlsafe_b64encode(bytes.fromhex(shown)).decode()


def standard(shown: str) -> str:
    """Hex as base64."""
    return base64.b64encode(bytes.fromhex(shown)).decode()


def bits(shown: str) -> bytes:
    """Little-endian, zero bytes at the end left out."""
    return bytes(int(shown[::-1][at : at + 8][::-1], 2) for at in range(0, len(shown), 8)).rstrip(b"\0")


# Dates and times


def civil(day: int) -> str:
    """A day since 1970 as ISO-8601 has it, in the proleptic Gregorian calendar."""
    era, of_era = divmod(day + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{of_year - (153 * shifted + 2) // 5 + 1:02d}"


def clock(micros: int, digits: int | None = None) -> str:
    """A time of the day with so many digits of fraction, as few as it needs if none are told."""
    seconds, fraction = divmod(micros, 1_000_000)
    shown = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    tail = f".{fraction:06d}"[: digits + 1] if digits else "" if digits == 0 else f".{fraction:06d}".rstrip("0")
    return shown + tail.rstrip(".")


def days(shown: str) -> int:
    """Days since 1970."""
    return _DAYS[shown] if shown in _DAYS else int(shown)


def iso_date(shown: str) -> str:
    """A date as text."""
    return _ISO_DAYS[shown] if shown in _ISO_DAYS else civil(int(shown)) + "Z"


def micros(shown: str) -> int:
    """Microseconds since 1970, the largest int64 for what lies beyond."""
    return _MICROS[shown] if shown in _MICROS else min(int(shown), _LONG)


def millis(shown: str) -> int:
    """Milliseconds since 1970."""
    return (_MICROS[shown] if shown in _MICROS else int(shown)) // 1000


def nanos(shown: str) -> int:
    """Nanoseconds since 1970."""
    return {"infinity": _LONG, "-infinity": -_LONG - 1}[shown] if shown in _MICROS else int(shown) * 1000


def iso_timestamp(shown: str) -> str:
    """A timestamp as text."""
    return _ISO_STAMPS[shown] if shown in _ISO_STAMPS else _stamp(int(shown), None)


def zoned(digits: int) -> Model:
    """A timestamp with zone as text."""
    return lambda shown: shown if shown in _MICROS else _stamp(int(shown), digits)


def _stamp(instant: int, digits: int | None) -> str:
    day, within = divmod(instant, _DAY_US)
    return f"{civil(day)}T{clock(within, digits)}Z"


def iso_time(shown: str) -> str:
    """A time as text; 24:00 is midnight."""
    return clock(int(shown) % _DAY_US) + "Z"


def zoned_time(shown: str) -> str:
    """From microseconds at UTC and the text as printed."""
    instant, _ = shown.split("|")
    return clock(int(instant) % _DAY_US) + "Z"


def time_in_array(shown: str) -> int:
    """Microseconds as the reference's driver reads an array: milliseconds count, and 24:00 is midnight."""
    return int(shown) // 1000 * 1000 % _DAY_US


def cut_zoned_time(shown: str) -> str:
    """Without the fraction."""
    instant, printed = shown.split("|")
    return zoned_time(f"{int(instant) // 1_000_000 * 1_000_000}|{printed}")


def duration(shown: str) -> int:
    """From years, months, days, hours, minutes and seconds: microseconds, in Java's doubles."""
    if "infinity" in shown:
        return -_LONG - 1 if shown.startswith("-") else _LONG
    years, months, day, hours, minutes = map(int, shown.split()[:5])
    whole = int(Decimal(shown.split()[5]))
    seconds = whole + int((Decimal(shown.split()[5]) - whole) * 1_000_000) / 1e6
    span = (((((years * 12 + months) * (365.25 / 12) + day) * 24 + hours) * 60) + minutes) * 60 + seconds
    return max(-_LONG - 1, min(_LONG, int(span * 1e6)))


def iso_duration(shown: str) -> str:
    """All parts of an interval."""
    if "infinity" in shown:
        return shown
    *whole, seconds = shown.split()
    plain = format(Decimal(seconds), "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "P{}Y{}M{}DT{}H{}M{}S".format(*whole, "0" if plain == "-0" else plain)


# Structures


def point(sent: str) -> dict[str, Any]:
    """From the sixteen bytes of point_send."""
    x, y = struct.unpack(">dd", bytes.fromhex(sent))
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


def vector(shown: str) -> list[float]:
    """Numbers as printed, read as doubles."""
    return [float(number) for number in shown[1:-1].split(",")]


def half_vector(shown: str) -> list[float]:
    """Numbers as printed, read as floats."""
    return [float(np.float32(number)) for number in shown[1:-1].split(",")]


def sparse_vector(shown: str) -> dict[str, Any]:
    """Dimensions and a map in the order of a Java HashMap that was made for as many keys."""
    body, dimensions = shown.removeprefix("{").split("}/")
    entries = [(int(key), float(number)) for key, number in (pair.split(":") for pair in body.split(",") if pair)]
    size = 1
    while size < len(entries):
        size *= 2
    while len(entries) > int(size * 0.75):
        size *= 2
    buckets: list[list[tuple[int, float]]] = [[] for _ in range(size)]
    for key, number in entries:
        buckets[(key ^ key >> 16) % size].append((key, number))
    return {"dimensions": int(dimensions), "vector": [pair for bucket in buckets for pair in bucket]}
