"""Asks the probes one after the other. What one of them raises is its result, and the next one is asked."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailrace.connectors.ports import ConnectorPackage
from tailrace.connectors.probe import Answer, Bench, Expectation, NotAskedError, Probe
from tailrace.verify.shared_probes import shared_probes

log = logging.getLogger(__name__)

AS_EXPECTED, DIFFERS, NOTED, ERROR, SKIPPED = "as expected", "differs", "noted", "error", "skipped"
OUTCOMES = (AS_EXPECTED, DIFFERS, NOTED, ERROR, SKIPPED)
READ_ONLY = "it writes, and --read-only was given"
UNPREPARED = "the tables of the command could not be made"
PREPARE = "rights.prepare"
# The order in which subjects are asked and reported: what explains much comes first.
SUBJECTS = ("identity", "drivers", "rights", "capture", "rows", "types", "keys", "blocking", "latency")


@dataclass(frozen=True)
class Asked:
    """A probe without what asks it."""

    name: str
    question: str
    meaning: str
    expected: Mapping[str, Any]

    @staticmethod
    def of(probe: Probe) -> Asked:
        """The probe."""
        return Asked(probe.name, probe.question, probe.meaning, {each.fact: each.shown for each in probe.expected})


@dataclass(frozen=True)
class Result:
    """A probe with its outcome; `means` is what that means for the person, `ms` how long it took."""

    asked: Asked
    outcome: str
    found: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    means: tuple[str, ...] = ()
    ms: int = 0


@dataclass(frozen=True)
class Job:
    """What is to be asked: nothing of what is `done`, and nothing that writes if `skips` says why.

    `refused` is what Bench.refused was when the tables were made.
    """

    skips: str = ""
    done: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)


def ask_all(
    bench: Bench, package: ConnectorPackage, job: Job, begin: Callable[[Asked], None], tell: Callable[[Result], None]
) -> None:
    """Ask the probes of a job: `begin` is called before each, `tell` with its result."""
    bench.refused = job.refused
    skips = job.skips
    for probe in (_preparing(bench), *_ordered([*shared_probes(bench, package), *bench.probes()])):
        if probe.name in job.done or (probe.name == PREPARE and skips):
            continue
        begin(Asked.of(probe))
        result = skipped(Asked.of(probe), skips) if probe.writes and skips else _asked(bench, probe)
        tell(result)
        if probe.name == PREPARE and result.outcome != AS_EXPECTED:
            skips = UNPREPARED


def skipped(asked: Asked, why: str) -> Result:
    """The result of a probe that is not asked."""
    return Result(asked, SKIPPED, about={"why": why}, means=(f"Not asked: {why}.",))


def failed(asked: Asked, facts: Mapping[str, Any], ms: int) -> Result:
    """The result of a probe that did not come to its end."""
    means = f"The probe did not come to its end, so what it asks is unknown for this server. {asked.meaning}"
    return Result(asked, ERROR, facts, means=(means,), ms=ms)


def _ordered(probes: Sequence[Probe]) -> list[Probe]:
    """Probes by subject; those of a subject stay in their order."""
    return sorted(probes, key=lambda probe: SUBJECTS.index(probe.name.partition(".")[0]))


def _preparing(bench: Bench) -> Probe:
    def ask() -> Answer:
        bench.prepare()
        return Answer({"made": True})

    question = "Can the command make a schema of its own, with captured tables?"
    wants = Expectation("made", (True,), "Nothing that writes can be tried.")
    return Probe(PREPARE, question, "The user may do what the probes below need.", ask, (wants,))


def _asked(bench: Bench, probe: Probe) -> Result:
    begin, asked = time.monotonic(), Asked.of(probe)
    try:
        answer = probe.ask()
    except NotAskedError as reason:
        return skipped(asked, str(reason))
    except Exception as error:
        log.debug("the probe %s failed", probe.name, exc_info=True)
        return failed(asked, {"error": bench.code(error), "class": type(error).__name__}, _ms(begin))
    everything = {**answer.about, **answer.found}
    wrong = tuple(dict.fromkeys(each.otherwise for each in probe.expected if not each.holds(everything)))
    outcome = DIFFERS if wrong else AS_EXPECTED if probe.expected else NOTED
    return Result(asked, outcome, answer.found, answer.about, wrong or (probe.meaning,), _ms(begin))


def _ms(begin: float) -> int:
    return round((time.monotonic() - begin) * 1000)
