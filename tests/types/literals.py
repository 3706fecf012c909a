"""Values of each type as the texts that are put into the server: the whole range, edges often."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, given, settings

Literals = st.SearchStrategy[Any]

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=30) | st.text(
    "\"\\,{}\t\n\r\b\v\f'N \u2028", max_size=10
)
INFINITE = st.sampled_from(["infinity", "-infinity"])
DOUBLE = st.floats()
# The first and the last day of a DATE, as Julian days, which the server reads after a J.
_JULIAN_1970, _LAST_DATE, _LAST_TIMESTAMP = 2_440_588, 2_147_483_493, 109_203_527
_DAY_US = 86_400_000_000


# Ten values a draw, since a draw of its own costs a millisecond; more would go beyond what Hypothesis gives for one.
_A_DRAW = 10


def drawn(values: Literals, count: int) -> list[Any]:
    """So many draws, the same ones each time."""
    found: list[Any] = []

    @settings(
        max_examples=-(-count // _A_DRAW),
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(values, min_size=_A_DRAW, max_size=_A_DRAW))
    def draw(some: list[Any]) -> None:
        found.extend(some)

    draw()
    return found[:count]


def integers(bits: int) -> Literals:
    """Integers of so many bits with sign."""
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(str)


def doubles(width: Literal[32, 64]) -> Literals:
    """Floating-point numbers in the server's names."""
    return st.floats(width=width).map(repr)


def decimals(precision: int, scale: int, special: Iterable[str] = ("NaN",)) -> Literals:
    """Decimals of NUMERIC(precision, scale), with as many digits as it has."""
    most = 10**precision - 1

    def written(unscaled: int) -> str:
        if scale <= 0:
            return str(unscaled) + "0" * -scale
        digits = str(abs(unscaled)).rjust(scale + 1, "0")
        return f"{'-' * (unscaled < 0)}{digits[:-scale]}.{digits[-scale:]}"

    # Short ones as often as long ones.
    sizes = st.integers(0, precision).flatmap(lambda size: st.integers(-(10**size - 1), 10**size - 1))
    return (sizes | st.sampled_from([most, -most])).map(written) | st.sampled_from(list(special))


def any_numeric() -> Literals:
    """NUMERIC without limits."""
    edges = ["NaN", "Infinity", "-Infinity", "0.000", "-0.0", "1" * 700 + ".10"]
    longest = ["1e131071", "-1e-16383", "9" * 4301]
    pairs = st.tuples(st.integers(1, 60), st.integers(-20, 60))
    return pairs.flatmap(lambda pair: decimals(*pair, special=("0",))) | _seldom(edges, 20) | _seldom(longest, 300)


def _seldom(values: list[str], among: int) -> Literals:
    """One of some values, once in so many draws; a small number else."""
    return st.integers(1, among).flatmap(lambda number: st.just(str(number)) if number > 1 else st.sampled_from(values))


def money() -> Literals:
    """Cents of 64 bits as amounts."""
    return st.integers(-(2**63), 2**63 - 1).map(
        lambda cents: f"{'-' * (cents < 0)}{abs(cents) // 100}.{abs(cents) % 100:02d}"
    )


def bytea() -> Literals:
    """Bytes in hex."""
    return st.binary(max_size=40).map(lambda raw: "\\x" + raw.hex())


def bit_strings(least: int, most: int) -> Literals:
    """Bit strings."""
    return st.text("01", min_size=least, max_size=most)


def jsons(unicode: bool) -> Literals:
    """JSON with odd texts and spaces; jsonb has no NUL in it."""
    leaves = st.none() | st.booleans() | st.integers() | TEXT | st.floats(allow_nan=False, allow_infinity=False)
    trees = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
    )
    return trees.map(lambda tree: json.dumps(tree, ensure_ascii=unicode, indent=None if unicode else 1))


def julian(last: int) -> st.SearchStrategy[int]:
    """Days after 4714-11-24 BC; half of them in the last thousand years or the next."""
    return st.integers(0, last) | st.integers(_JULIAN_1970 - 365_000, _JULIAN_1970 + 365_000)


def dates() -> Literals:
    """All days of a DATE, and its infinities."""
    return julian(_LAST_DATE).map("J{}".format) | INFINITE


def bounds() -> Literals:
    """Days that have a next one, which the server makes the end of a range."""
    return julian(_LAST_DATE - 1).map("J{}".format) | INFINITE


def clocks() -> st.SearchStrategy[str]:
    """Times of the day with up to six digits of fraction."""
    fine = st.integers(0, _DAY_US - 1) | st.integers(0, 86_399).map(lambda second: second * 1_000_000)

    def written(micros: int) -> str:
        seconds, fraction = divmod(micros, 1_000_000)
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"

    return fine.map(written)


def times() -> Literals:
    """TIME, 24:00 among them."""
    return clocks() | st.just("24:00:00")


def zoned_times() -> Literals:
    """TIMETZ under every offset the server takes."""

    def written(time: str, offset: int) -> str:
        size = abs(offset)
        return f"{time}{'-' if offset < 0 else '+'}{size // 3600:02d}:{size // 60 % 60:02d}:{size % 60:02d}"

    return st.builds(written, times(), st.sampled_from([0, 3600, -19_800]) | st.integers(-57_599, 57_599))


def timestamps(days: st.SearchStrategy[int] | None = None, zone: str = "") -> Literals:
    """Timestamps from 4714 BC to 294276, and their infinities."""
    # Rounding to fewer digits must not leave the range, so the last day ends early.
    day = julian(_LAST_TIMESTAMP - 1) if days is None else days
    return st.builds(f"J{{}} {{}}{zone}".format, day, clocks()) | INFINITE


def near_timestamps() -> Literals:
    """Timestamps that fit nanoseconds."""
    return timestamps(st.integers(_JULIAN_1970 - 106_750, _JULIAN_1970 + 106_750))


def intervals() -> Literals:
    """Intervals, each part with a sign of its own."""
    months = st.integers(-2_000_000_000, 2_000_000_000) | st.integers(-30, 30)
    days = st.integers(-2_000_000_000, 2_000_000_000) | st.integers(-400, 400)
    # The reference engine's driver holds hours in 32 bits.
    seconds = st.integers(-7_700_000_000_000, 7_700_000_000_000) | st.integers(-100_000, 100_000)
    micros = st.just(0) | st.integers(0, 999_999)

    def written(month: int, day: int, second: int, fraction: int) -> str:
        hours, rest = divmod(abs(second), 3600)
        sign = "-" if second < 0 else "+"
        return f"{month} mons {day} days {sign}{hours}:{rest // 60:02d}:{rest % 60:02d}.{fraction:06d}"

    return st.builds(written, months, days, seconds, micros) | INFINITE


def ranges(bounds: Literals) -> Literals:
    """Ranges with and without ends; equal ends and `empty` among them. The server turns away a range upside down."""

    def written(low: Any, opened: str, closed: str, kind: str) -> str:
        both = {"low": f'"{low}",', "high": f',"{low}"', "point": f'"{low}","{low}"', "none": ","}
        return f"{opened}{both[kind]}{closed}"

    some = st.builds(
        written, bounds, st.sampled_from("[("), st.sampled_from("])"), st.sampled_from(["low", "high", "point", "none"])
    )
    return some | st.just("empty")


def points() -> Literals:
    """Points anywhere."""
    return st.builds("({!r},{!r})".format, DOUBLE, DOUBLE)


def vectors(width: int, most: float) -> Literals:
    """pgvector's dense vectors, which hold finite numbers."""
    numbers = st.floats(-most, most, width=width)  # type: ignore[arg-type]
    return st.lists(numbers, min_size=1, max_size=8).map(lambda each: f"[{','.join(map(repr, each))}]")


def sparse_vectors() -> Literals:
    """pgvector's sparse vectors of the dimensions that an int16 can tell."""
    numbers = st.floats(0.125, 1000, width=32)
    entries = st.dictionaries(st.integers(1, 32_767) | st.integers(1, 60), numbers, max_size=20)
    return entries.map(lambda each: f"{{{','.join(f'{key}:{each[key]!r}' for key in sorted(each))}}}/32767")
