"""The checks of `tailrace check`, which `tailrace run` makes as well, before Spark takes its time to start."""

from __future__ import annotations

from tailrace.connectors.finding import Finding, warnings
from tailrace.errors import SourceError
from tailrace.pipeline import sink_check
from tailrace.pipeline.checkpoint import SparkAloneError
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.query_id import position_of
from tailrace.pipeline.run_state import run_state


def findings(definition: Definition) -> list[Finding]:
    """What there is to say of a pipeline's properties, database and sink. Raises ConfigError, OffsetError."""
    admin = definition.admin()
    database = admin.checks(position_of(definition).offsets)
    return [*warnings(definition.config()), *database, *sink_check.check(definition, admin)]


def last_run(definition: Definition) -> list[Finding]:
    """A warning of the error that ended the last run: nobody knows whether it would come again. Raises ConfigError."""
    last = run_state(definition.checkpoint)
    if last.state != "failed" or last.last is None:
        return []
    remedy = last.last.remedy or "see the pipeline's log"
    return [Finding("last run", None, f"it ended by an error at {last.last.at}: {last.last.error}", remedy)]


def before_start(definition: Definition) -> list[Finding]:
    """The problems and warnings of a pipeline that is about to start. Raises what its first start cannot do without.

    A pipeline that has begun may resume in spite of a problem: a server comes back, a lost position is read again where
    snapshot.mode says so. Only properties are checked beside another run, and where Spark alone reads the checkpoint.
    """
    try:
        is_checked = run_state(definition.checkpoint).state != "running"
    except SparkAloneError:
        is_checked = False
    if not is_checked:
        return warnings(definition.config())
    not_ok = [finding for finding in findings(definition) if finding.ok is not True]
    problems = [finding for finding in not_ok if finding.ok is False]
    if not problems or position_of(definition).committed is not None:
        return not_ok
    if len(problems) == 1:
        raise SourceError(problems[0].what, where=problems[0].name, remedy=problems[0].remedy)
    lines = [f"{problem.name}: {problem.what}; remedy: {problem.remedy}" for problem in problems]
    raise SourceError(
        "\n  ".join([f"there are {len(problems)} problems:", *lines]),
        remedy="solve them; `tailrace check` shows whether they are",
    )
