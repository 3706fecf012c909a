"""Regular expressions of signals: what they match, and that none takes for ever."""

from __future__ import annotations

import time

import pytest

from tailrace.errors import SignalError
from tailrace.snapshot import matching as module
from tailrace.snapshot.matching import matching

NAMES = ["public.t", "public.u", "sales.t"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("public.t", ["public.t"]),
        ("PUBLIC.T", []),
        (r"public\..*", ["public.t", "public.u"]),
        (r"(?i)PUBLIC\..*", ["public.t", "public.u"]),
        (r"public\.(?!u).*", ["public.t"]),
        (r"\Qpublic.\E.", ["public.t", "public.u"]),
        (r"(?<schema>.*)\.t", ["public.t", "sales.t"]),
        ("public", []),
        ("(", "missing ), unterminated subpattern at position 0"),
        ("a{5,1}", "min repeat greater than max repeat at position 2"),
    ],
)
def test_what_an_expression_matches(expression: str, expected: list[str] | str) -> None:
    assert matching([expression], NAMES, ignore_case=False) == [expected]


def test_case_may_be_ignored() -> None:
    assert matching(["PUBLIC.T", "PUBLIC.*"], NAMES, ignore_case=True) == [["public.t"], ["public.t", "public.u"]]


@pytest.mark.slow
@pytest.mark.parametrize("expression", ["(([a-z_.]+)+)+!", "(a|a)" * 40 + "!"])
def test_an_expression_that_takes_too_long_is_an_error(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MATCHING_SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(SignalError, match="cannot be matched with 1 tables within 1 s"):
        matching([expression], ["a" * 59], ignore_case=False)
    assert time.monotonic() - began < 60, "hours without the limit"
