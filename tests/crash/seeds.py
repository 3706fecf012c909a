"""How many random cases a crash test has: two, or as many as asked for."""

from __future__ import annotations

import os

SEEDS = int(os.environ.get("TAILRACE_CRASH_SEEDS", "2"))


def seeds(most: int = 20) -> range:
    """The seeds of a test."""
    return range(min(SEEDS, most))
