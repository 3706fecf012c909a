"""Says in words how a pipeline is and what to do, for each condition."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.connectors.finding import SINK, Finding
from tailrace.operate.condition import Condition
from tailrace.operate.status import Status
from tailrace.override import override

_WAITS = "nothing: the pipeline waits for it, and goes on by itself"
_RESTARTS = "nothing: the query is started again by itself"


@dataclass(frozen=True)
class Health:
    """The condition of a pipeline, what is the matter (empty: nothing), and what to do about it (empty: nothing)."""

    name: str
    condition: Condition
    what: str = ""
    todo: str = ""

    @override
    def __str__(self) -> str:
        return "; ".join(filter(None, (self.condition.value, self.what, self.todo)))


def health(status: Status) -> Health:
    """The health of a pipeline by its status."""
    condition = status.condition
    return Health(status.name, condition, *_said(status, condition))


def _said(status: Status, condition: Condition) -> tuple[str, str]:
    errors = [finding for finding in status.problems if finding.ok is False]
    sink = [finding for finding in errors if finding.name == SINK]
    source = [finding for finding in errors if finding.name != SINK]
    last = None if status.run is None else status.run.last
    if condition is Condition.SOURCE_AWAY:
        what, remedy = _joined(source)
        return what, _or_else(_WAITS, remedy)
    if condition is Condition.SINK_AWAY:
        what, remedy = _joined(sink)
        return what, _or_else(_WAITS, remedy)
    if condition is Condition.STUCK:
        return _joined(errors)
    if condition is Condition.INCOMPLETE:
        return _lacking(status)
    if condition is Condition.FAILED and last is not None:
        return f"{last.error} (at {last.at})", last.remedy or "see the pipeline's log"
    if condition is Condition.RESTARTING:
        error, cure = status.passing
        return f"the query failed by an error that may pass: {error}", _or_else(_RESTARTS, cure)
    if condition is Condition.KILLED:
        return str(status.run), "start it again: `tailrace run`; it resumes from its checkpoint"
    return _WORDS.get(condition, ("", ""))


_WORDS = {
    Condition.NEVER_STARTED: ("", "`tailrace check`, then `tailrace run`"),
    Condition.STARTING: ("no micro-batch of this run is finished yet", ""),
    Condition.SILENT: (
        "the process has not said for a minute how far its run is",
        "restart the process; it resumes from its checkpoint",
    ),
    Condition.PAUSED: ("an operator has paused it", "resume it"),
    Condition.STOPPED: ("", "`tailrace run` resumes it from its checkpoint"),
}


def _or_else(todo: str, remedy: str | None) -> str:
    return f"{todo}. If it stays: {remedy}" if remedy else todo


def _joined(findings: list[Finding]) -> tuple[str, str]:
    return (
        "; ".join(finding.what for finding in findings),
        "; ".join(dict.fromkeys(finding.remedy for finding in findings if finding.remedy)),
    )


def _lacking(status: Status) -> tuple[str, str]:
    aside = [f"{each.name} is set aside: {each.error.partition(chr(10))[0]}" for each in status.set_aside]
    names = {each.name for each in status.set_aside}
    others = [each for each in status.replica if each.is_lacking and each.table not in names]
    what = [*aside, *(f"{each.table} is {each.state}: {each.why}" for each in others)]
    todo = ["fix the cause, then run `tailrace retry`"] if aside else []
    return "; ".join(what), "; ".join(dict.fromkeys([*todo, *(each.takes for each in others if each.takes)]))
