"""JSON text of others: how deep it is, what of it is refused, and that it takes no time to see."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

import pytest

from tailrace.model.text.json_reader import MOST_LEVELS, levels, make_room, read


@pytest.fixture(autouse=True)
def limit() -> None:
    """Python's own limit, whatever was read before."""
    sys.setrecursionlimit(1000)


def nested(depth: int, inner: str = "1") -> str:
    return '{"a":' * depth + inner + "}" * depth


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (nested(200), 200),
        ("[" * 300 + "]" * 300, 300),
        (nested(60, '"}}}}{{{{[["'), 60),
        (nested(60, r'"\"}}}{{{"'), 60),
        ('{"a":1}' * 500, 1),
        ("[" * 70 + "]" * 70 + "[" * 80 + "]" * 80, 80),
        ("{" * 2000, 2000),
    ],
)
def test_levels_are_those_of_the_text(text: str, depth: int) -> None:
    assert levels(text) == depth


@pytest.mark.parametrize("depth", [200, 600, MOST_LEVELS])
def test_as_many_levels_are_read_as_the_reference_reads(depth: int) -> None:
    assert list(read(nested(depth))) == ["a"]


@pytest.mark.parametrize("text", [nested(MOST_LEVELS + 1), "[" * 100_000, '[{"a":' * 5000])
def test_more_levels_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 1,000 levels"):
        read(text)


@pytest.mark.parametrize("text", [r'{"a":"\ud800"}', r'{"\uDfff":1}', r'["\ud800\u0041"]', r'"\udc00\ud800"'])
def test_half_a_pair_of_surrogates_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [(r'"\ud83d\ude00"', "\U0001f600"), (r'"\\ud800"', r"\ud800"), ('{"a": 1e999}', {"a": float("inf")})],
)
def test_what_is_text_is_read(text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    "text", ['"' + '\\"' * 500_000, '{"' * 200_000, "\\" * 1_000_000 + "{" * 100, nested(60, '"x"') * 5000]
)
def test_the_levels_of_a_long_text_take_no_time(text: str) -> None:
    began = time.monotonic()
    with suppress(ValueError):
        make_room(text)
    assert time.monotonic() - began < 30
