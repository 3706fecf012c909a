"""Matches names with user-supplied regular expressions, within a time limit.

An expression such as `((a+)+)+!` takes Python's engine hours. So expressions with a choice (repetition, alternatives)
are tried by a process of their own, which is ended when the time is up.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Sequence

from tailrace.errors import SignalError
from tailrace.javalike.patterns import to_python

MATCHING_SECONDS = 5.0  # guessed
_CHOICES = re.compile(r"[*+?{|]")
_SCRIPT = """
from __future__ import annotations
import json, re, sys
{}
print(json.dumps(matched(**json.load(sys.stdin))))
"""


def matching(expressions: Sequence[str], names: Sequence[str], *, ignore_case: bool) -> list[list[str] | str]:
    """For each Java expression the names that it matches as a whole, or as text why it is no expression.

    Raises SignalError where that takes too long.
    """
    patterns = [to_python(expression) for expression in expressions]
    if not any(map(_CHOICES.search, patterns)):
        return matched(patterns, list(names), ignore_case)
    given = json.dumps({"patterns": patterns, "names": list(names), "ignore_case": ignore_case})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _SCRIPT.format(inspect.getsource(matched))],
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=MATCHING_SECONDS,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise SignalError(
            f"its regular expressions cannot be matched with {len(names)} tables within {MATCHING_SECONDS:.0f} s",
            remedy="write the names of the tables, or expressions without nested repetitions",
        ) from error
    matches: list[list[str] | str] = json.loads(done.stdout)
    return matches


def matched(patterns: list[str], names: list[str], ignore_case: bool) -> list[list[str] | str]:
    """The same of Python's patterns, and without a limit. `matching` runs its source in another process."""
    flags = re.ASCII | (re.IGNORECASE if ignore_case else 0)
    matches: list[list[str] | str] = []
    for pattern in patterns:
        try:
            compiled = re.compile(pattern, flags)
            matches.append([name for name in names if compiled.fullmatch(name)])
        except (re.error, OverflowError, RecursionError) as error:  # noqa: PERF203  # each may be wrong by itself
            matches.append(str(error))
    return matches
