"""Java's SimpleDateFormat in UTC and English: writes columns of instants, and reads texts.

Years are those of the era, as in Java: 44 BC is the year 44, and only the letter G tells it from 44 AD. The calendar
is the Gregorian one at all times; Java has the Julian one before 1582.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.arrow import indices, join, literal, repeat

DAY = 86_400_000
"""Milliseconds of a day."""

_Numbers = npt.NDArray[np.int64]
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z']+)|'")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "M": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "E": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "a": ("AM", "PM"),
    "G": ("BC", "AD"),
}
_DIGITS = "yMdDHkKhmsSu"
_ZONES = {"X": "Z", "Z": "+0000", "z": "UTC", "zzzz": "Coordinated Universal Time"}
_NAMED_ZONE = r"(?:GMT|UTC)(?:[+-]\d\d?:\d\d)?|[+-]\d\d:?\d\d"
_OFFSETS = {"X": r"Z|[+-]\d\d", "XX": r"Z|[+-]\d{4}", "XXX": r"Z|[+-]\d\d:\d\d"}


@dataclass(frozen=True)
class _Moments:
    """Fields of instants in milliseconds since 1970."""

    millis: _Numbers

    @cached_property
    def _days(self) -> npt.NDArray[np.datetime64]:
        return np.floor_divide(self.millis, DAY).astype("datetime64[D]")

    def number(self, letter: str) -> _Numbers:
        """The field of a letter; of M, E, a and G the place among their names."""
        days = self._days
        if letter in "yG":
            years: _Numbers = days.astype("datetime64[Y]").astype(np.int64) + 1970
            is_after = years > 0
            return np.where(is_after, years, 1 - years) if letter == "y" else is_after.astype(np.int64)
        if letter == "M":
            months: _Numbers = days.astype("datetime64[M]").astype(np.int64) % 12
            return months
        if letter in "dD":
            start = days.astype("datetime64[M]" if letter == "d" else "datetime64[Y]")
            place: _Numbers = (days - start.astype("datetime64[D]")).astype(np.int64) + 1
            return place
        if letter in "Eu":
            weekday: _Numbers = (days.astype(np.int64) + 3) % 7
            return weekday
        clock = np.mod(self.millis, DAY)
        unit, most = {"m": (60_000, 60), "s": (1000, 60), "S": (1, 1000), "a": (12 * 3_600_000, 2)}.get(
            letter, (3_600_000, 12 if letter in "Kh" else 24)
        )
        number: _Numbers = clock // unit % most
        return np.where(number == 0, most, number) if letter in "kh" else number

    def shown(self, letter: str, count: int) -> pa.Array:
        """The texts of a letter that stands so many times."""
        if letter in "XZz":
            return repeat(_ZONES["zzzz" if letter == "z" and count > 3 else letter], len(self.millis))
        numbers = self.number(letter)
        if _is_name(letter, count):
            names = _NAMES[letter]
            short = letter in "ME" and count < 4
            return pa.array([name[:3] if short else name for name in names], pa.string()).take(indices(numbers))
        if letter == "y" and count == 2:
            numbers = np.mod(numbers, 100)
        numbers = numbers + 1 if letter in "Mu" else numbers
        return pc.utf8_lpad(pa.array(numbers, pa.int64()).cast(pa.string()), count, "0")


@dataclass(frozen=True)
class DateFormat:
    """A pattern in pieces: a letter and how often it stands, or a text and 0."""

    pattern: str
    pieces: tuple[tuple[str, int], ...]

    @staticmethod
    def of(pattern: str) -> DateFormat:
        """From Java's form. Raises ValueError, which says what is wrong, for a pattern that is not known here."""
        return DateFormat(pattern, tuple(_pieces(pattern)))

    def format(self, millis: pa.Array) -> pa.Array:
        """Instants (int64, milliseconds since 1970) as texts; null stays null."""
        moments = _Moments(millis.fill_null(0).to_numpy(zero_copy_only=False))
        pieces = [moments.shown(piece, count) if count else piece for piece, count in self.pieces]
        return pc.if_else(millis.is_valid(), join(repeat("", len(millis)), *pieces), literal(None))

    def parse(self, texts: pa.Array) -> pa.Array:
        """Texts as instants, each different one once; null stays null.

        As in Java fields may be out of range (the 32nd day is in the next month), and what follows a match is ignored.
        Of more than three digits of S the first three count, where Java adds them all as milliseconds.
        Raises ValueError for a text that does not match.
        """
        codes = texts.dictionary_encode()
        instants = pa.array([self._instant(text) for text in codes.dictionary.to_pylist()], pa.int64())
        return instants.take(codes.indices)

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        out = []
        for at, (piece, count) in enumerate(self.pieces):
            if not count:
                out.append(re.escape(piece))
                continue
            if piece in "XZz":
                pattern = _OFFSETS[piece * count] if piece == "X" else _NAMED_ZONE
            elif _is_name(piece, count):
                pattern = "|".join(name for each in _NAMES[piece] for name in (each, each[:3]))
            else:
                following = self.pieces[at + 1] if at + 1 < len(self.pieces) else ("", 0)
                adjacent = following[1] and following[0] in _DIGITS and not _is_name(*following)
                digits = rf"\d{{1,{count if adjacent else 9}}}"
                # As many as there are, and never fewer: Python 3.10 has no possessive quantifiers.
                out.append(rf"[ \t]*(?=(?P<p{at}>{digits}))(?P=p{at})")
                continue
            out.append(rf"[ \t]*(?P<p{at}>{pattern})")
        return re.compile("".join(out), re.IGNORECASE | re.ASCII)

    def _instant(self, text: str) -> int:
        match = self._expression.match(text)
        if match is None:
            raise ValueError("does not match")
        values, offset = {}, 0
        for at, (piece, count) in enumerate(self.pieces):
            if count and piece in "XZz":
                offset = _offset(match[f"p{at}"])
            elif count and _is_name(piece, count):
                names = [name[:3].lower() for name in _NAMES[piece]]
                values[piece] = names.index(match[f"p{at}"][:3].lower()) + (piece == "M")
            elif count:
                digits = match[f"p{at}"]
                values[piece] = _value(piece, count, digits[:3] if piece == "S" else digits)
        return _day(values) * DAY + _clock(values) - offset


def _pieces(pattern: str) -> Iterator[tuple[str, int]]:
    for token in _TOKEN.finditer(pattern):
        letters = token[0]
        if letters == "'":
            raise ValueError("The pattern has a quote that does not end")
        if token[2] is None:
            yield (token[3] if token[1] is None else token[1].replace("''", "'") or "'"), 0
        elif letters[0] in "EaGXZzL" + _DIGITS and len(letters) <= (3 if letters[0] == "X" else 20):
            yield ("M" if letters[0] == "L" else letters[0]), len(letters)
        else:
            raise ValueError(f"The pattern {letters} is not known here")


def _is_name(letter: str, count: int) -> bool:
    return letter in ("E", "a", "G") or (letter == "M" and count > 2)


def _value(letter: str, count: int, digits: str) -> int:
    if letter != "y" or count > 2 or len(digits) != 2:
        return int(digits)
    first = datetime.now(timezone.utc).year - 80  # two digits are a year within 80 before and 20 after now
    year = first - first % 100 + int(digits)
    return year if year >= first else year + 100


def _day(values: Mapping[str, int]) -> int:
    """Days since 1970."""
    year, month = values.get("y", 1970), values.get("M", 1)
    year = year if values.get("G", 1) else 1 - year
    if "D" in values and not ("M" in values or "d" in values):
        month, day = 1, values["D"]
    else:
        day = values.get("d", 1)
    first = np.datetime64((year - 1970) * 12 + month - 1, "M").astype("datetime64[D]")
    return int(first.astype(np.int64)) + day - 1


def _clock(values: Mapping[str, int]) -> int:
    """Milliseconds since midnight."""
    half: Callable[[int], int] = lambda hour: (0 if hour == 12 else hour) + 12 * values.get("a", 0)  # noqa: E731
    hours = {"H": lambda hour: hour, "k": lambda hour: 0 if hour == 24 else hour, "K": half, "h": half}
    hour = next((read(values[letter]) for letter, read in hours.items() if letter in values), 12 * values.get("a", 0))
    return ((hour * 60 + values.get("m", 0)) * 60 + values.get("s", 0)) * 1000 + values.get("S", 0)


def _offset(text: str) -> int:
    """Milliseconds that a zone's clock is ahead of UTC."""
    digits = re.sub(r"\D", "", text)
    if not digits:
        return 0
    hours, minutes = (digits, "0") if len(digits) == 2 else (digits[:-2], digits[-2:])
    return (int(hours) * 60 + int(minutes)) * 60_000 * (-1 if "-" in text else 1)
