"""Asks the probes one after the other. What one of them raises is its result, and the next one is asked."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import ConnectorPackage
from tailrace.connectors.probe import Answer, Bench, Expectation, NotAskedError, Probe
from tailrace.errors import ConfigError
from tailrace.verify.clean_up import clean_up
from tailrace.verify.shared_probes import shared_probes

log = logging.getLogger(__name__)

AS_EXPECTED, DIFFERS, NOTED, ERROR, SKIPPED = "as expected", "differs", "noted", "error", "skipped"
OUTCOMES = (AS_EXPECTED, DIFFERS, NOTED, ERROR, SKIPPED)
READ_ONLY = "it writes, and --read-only was given"
_PREPARE = "rights.prepare"
UNPREPARED = "the schema of the command could not be made"
# The order in which subjects are asked and reported: what explains much comes first.
SUBJECTS = ("identity", "drivers", "rights", "capture", "rows", "types", "keys", "blocking", "latency")


@dataclass(frozen=True)
class Result:
    """A probe with its outcome; `means` is what that means for the person, `ms` how long it took."""

    probe: Probe
    outcome: str
    answer: Answer
    means: tuple[str, ...]
    ms: int


@dataclass
class Run:
    """All results; `left` are commands for what could not be dropped."""

    results: list[Result] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    obstacle: Finding | None = None

    @property
    def is_as_expected(self) -> bool:
        """Whether nothing differs, fails or is left on the server, and all was asked."""
        return not (self.left or self.is_interrupted or any(each.outcome in (DIFFERS, ERROR) for each in self.results))


def run(bench: Bench, package: ConnectorPackage, *, read_only: bool, tell: Callable[[Result], None]) -> Run:
    """Ask all probes, and drop what they have made; `tell` is given each result as it comes.

    Raises SourceError if the server cannot be reached, ConfigError if there is a schema of the command's name.
    """
    with bench.failures.translated("the server cannot be asked"):
        bench.connect(bench.config)
        if not read_only and bench.exists():
            remedy = (
                "if an earlier run was killed, run the same command with --drop, which drops what that run made; "
                "otherwise name another one by --schema"
            )
            raise ConfigError("exists already", where=f"the schema {bench.schema}", remedy=remedy)
    done = Run()
    try:
        _ask_all(bench, package, done, read_only=read_only, tell=tell)
    except KeyboardInterrupt:
        done.is_interrupted = True
    finally:
        done.left = [] if read_only else clean_up(bench)
        bench.close()
    return done


def _ask_all(
    bench: Bench, package: ConnectorPackage, done: Run, *, read_only: bool, tell: Callable[[Result], None]
) -> None:
    def told(result: Result) -> None:
        done.results.append(result)
        tell(result)

    skips = READ_ONLY if read_only else ""
    if not read_only:
        done.obstacle = bench.obstacle()
        prepared = _obstacle(done.obstacle) if done.obstacle else _asked(bench, _preparing(bench))
        told(prepared)
        skips = UNPREPARED if prepared.outcome != AS_EXPECTED else ""
    for probe in ordered([*shared_probes(bench, package), *bench.probes()]):
        told(_skipped(probe, skips) if probe.writes and skips else _asked(bench, probe))


def ordered(probes: Sequence[Probe]) -> list[Probe]:
    """Probes by subject; those of a subject stay in their order."""
    return sorted(probes, key=lambda probe: SUBJECTS.index(probe.name.partition(".")[0]))


def _preparing(bench: Bench) -> Probe:
    def ask() -> Answer:
        bench.prepare()
        return Answer({"made": True})

    question = "Can the command make a schema of its own, with captured tables?"
    return Probe(
        _PREPARE, question, "The user may do what the probes below need.", ask, (Expectation("made", (True,)),)
    )


def _obstacle(finding: Finding) -> Result:
    meaning = f"Nothing that writes can be tried. Remedy: {finding.remedy}"
    probe = Probe(_PREPARE, "Can the command make captured tables?", meaning, Answer)
    return Result(probe, SKIPPED, Answer(about={"why": finding.what}), (meaning,), 0)


def _asked(bench: Bench, probe: Probe) -> Result:
    begin = time.monotonic()
    try:
        answer = probe.ask()
    except NotAskedError as reason:
        return _skipped(probe, str(reason))
    except Exception as error:
        log.debug("the probe %s failed", probe.name, exc_info=True)
        found = {"error": bench.code(error), "class": type(error).__name__}
        means = "The probe did not come to its end, so what it asks is unknown for this server. " + probe.meaning
        return Result(probe, ERROR, Answer(found), (means,), _ms(begin))
    everything = {**answer.about, **answer.found}
    wrong = [each.otherwise for each in probe.expected if not each.holds(everything)]
    if wrong:
        return Result(probe, DIFFERS, answer, tuple(dict.fromkeys(wrong)), _ms(begin))
    return Result(probe, AS_EXPECTED if probe.expected else NOTED, answer, (probe.meaning,), _ms(begin))


def _skipped(probe: Probe, why: str) -> Result:
    return Result(probe, SKIPPED, Answer(about={"why": why}), (f"Not asked: {why}.",), 0)


def _ms(begin: float) -> int:
    return round((time.monotonic() - begin) * 1000)
