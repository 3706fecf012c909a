"""The shortest useful log of a case that fails: the failing tables, how they were made, and what was done to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.replica.run import Outcome

_MOST_LINES, _LONGEST = 40, 240


def told(folder: Path, found: Outcome) -> Iterator[str]:
    """Its lines."""
    failed = [verdict for verdict in found.verdicts if not verdict.passes]
    yield from (f"FAILED {error}" for error in found.errors)
    yield from map(str, failed)
    names = "|".join(re.escape(verdict.table.rpartition(".")[2]) for verdict in failed)
    for name in ("setup.sql", "workload.sql"):
        file = folder / name
        if names and file.exists():
            yield f"-- {name}"
            yield from _about(file.read_text(encoding="utf-8").splitlines(), re.compile(rf"\b({names})\b"))


def _about(lines: list[str], names: re.Pattern[str]) -> Iterator[str]:
    chosen = [line for line in lines if line.startswith("-- @") or names.search(line)]
    more = len(chosen) - _MOST_LINES
    yield from (line[:_LONGEST] for line in chosen[:_MOST_LINES])
    if more > 0:
        yield f"... {more} more lines"
