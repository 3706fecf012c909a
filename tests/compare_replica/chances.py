"""Random pauses, stops, restarts and kills between the parts of a workload; they are lines of a script."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

CHECK, STOP, START = "-- @check", "-- @stop", "-- @start"
# Where a run of its own kills itself (tailrace.spark.failpoint).
_PLACES = ("after-plan", "after-read", "after-table", "after-write", "after-commit", "after-copy")


def kills(random: Random, process: bool) -> list[str]:
    """What interrupts a phase: nothing in most cases."""
    if process:
        arm = f"-- @arm {random.choice(_PLACES)} {random.randrange(1, 3)}"
        return random.choice(([], ["-- @kill"], [arm], [arm]))
    return random.choices(([], [STOP], ["-- @kill"]), (6, 2, 2))[0]


def interrupted(random: Random, parts: Sequence[Sequence[Any]], interruption: Sequence[str]) -> list[Any]:
    """The parts one after the other, with pauses, and with an interruption between two of them; a stop ends later."""
    at = random.randrange(len(parts)) if interruption else -1
    lines: list[Any] = []
    for number, part in enumerate(parts):
        lines += interruption if number == at else ()
        lines += part
        if random.random() < 0.25:
            lines.append(f"-- @sleep {random.choice(('0.05', '0.2', '0.5'))}")
    return [*lines, START] if STOP in interruption else lines
