"""How many random cases a crash test has: one in the default suite, a few in `make crash`, more if asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

SEEDS = int(os.environ.get("TAILRACE_CRASH_SEEDS", "2"))


def seeds(*default: int, most: int = 20) -> Iterable[object]:
    """The seeds of a test; those of `default` belong to the default suite, the others only to `make crash`."""
    chosen = sorted({*default, *range(min(SEEDS, most))})
    return [pytest.param(seed, marks=() if seed in default else pytest.mark.crash) for seed in chosen]
