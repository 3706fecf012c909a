"""Finds our own sentence, with its remedy, in the text of an error that Spark has wrapped."""

from __future__ import annotations

import re

from tailrace import errors
from tailrace.errors import TailraceError

_OURS = re.compile(r"^(?:.*\W)?tailrace\.errors\.(\w+): (.*)$")
_REMEDY = "  Remedy: "


def from_spark(error: BaseException) -> TailraceError | None:
    """The TailraceError that `error` is, was caused by, or prints in a Python traceback; None if there is none.

    Of several in a text the last is taken: a traceback ends with what was finally raised.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, TailraceError):
            return seen
        seen = seen.__cause__
    lines = str(error).splitlines()
    found = [(index, match) for index, line in enumerate(lines) if (match := _OURS.match(line))]
    if not found:
        return None
    index, match = found[-1]
    kind = getattr(errors, match[1], TailraceError)
    return _read(kind, match[2], lines[index + 1 :])


def _read(kind: type[TailraceError], first: str, rest: list[str]) -> TailraceError:
    """The error whose text begins with `first` and goes on while the lines are indented by two spaces, as ours are."""
    what, remedy = [first], None
    for line in rest:
        if line.startswith(_REMEDY):
            remedy = line.removeprefix(_REMEDY)
            break
        if not line.startswith("  "):
            break
        what.append(line)
    return kind("\n".join(what), remedy=remedy)


def summary(error: BaseException) -> str:
    """The first line of a foreign error worth showing: Spark's own message without stack and query plan."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"^(\w+\.)*\w*(Error|Exception|Warning): ", line)]
    return told[-1] if told else (lines[0] if lines else type(error).__name__)
