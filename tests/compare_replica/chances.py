"""Random pauses, stops, restarts and kills between the parts of a workload; they are lines of a script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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


def reconfigured(
    random: Random, lines: Sequence[Any], given: Mapping[str, str], choices: Mapping[str, Sequence[str | None]]
) -> list[Any]:
    """The lines of a workload with other properties from some of its starts on, and with more starts.

    `given` are the properties at first, to which null leads back; `choices` are those that change, with their values.
    """

    def configure() -> str:
        names = random.sample(sorted(choices), min(len(choices), random.choice((1, 1, 2))))
        changes = {name: random.choice(choices[name]) for name in names}
        found = {name: given.get(name) if value is None else value for name, value in changes.items()}
        return f"-- @configure {json.dumps(found)}"

    result: list[Any] = []
    for place, line in enumerate(lines):
        if line == START and random.random() < 0.5:
            result.append(configure())
        result.append(line)
        if line == CHECK and place < len(lines) - 1 and random.random() < 0.4:
            result += [STOP, configure(), START]
    return result
