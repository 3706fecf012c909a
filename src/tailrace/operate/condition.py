"""Decides in which of a few conditions a pipeline is; health checks, metrics, commands and the console all show it.

| condition | when | alive | ready | exit code of `status` | state in Connect's REST |
|---|---|---|---|---|---|
| `never started` | no run has used the checkpoint | yes | no | 0 | UNASSIGNED |
| `starting` | Spark starts, or the run has not read its first micro-batch | yes | no | 0 | RUNNING |
| `snapshot` | the first snapshot is being read | yes | yes | 0 | RUNNING |
| `streaming` | the log is read and written | yes | yes | 0 | RUNNING |
| `incomplete` | it runs, and some tables are set aside or differ from the source | yes | yes | 1 | RUNNING |
| `source away` | it runs, and the database does not answer; it tries again by itself | yes | no | 0 | RUNNING |
| `sink away` | it runs, and the sink does not answer; it tries again by itself | yes | no | 0 | RUNNING |
| `restarting` | the query failed by an error that may pass, and is started again | yes | no | 0 | RESTARTING |
| `stuck` | the server says that changes do not come, or the next start would fail | yes | no | 1 | FAILED |
| `silent` | the process does not say anything of its run any more | no | no | 1 | FAILED |
| `paused` | an operator has paused it | yes | no | 0 | PAUSED |
| `stopped` | it was stopped in order, or had read everything | yes | no | 0 | STOPPED |
| `failed` | the last run ended by an error | yes | no | 1 | FAILED |
| `killed` | its process is gone without a word | no | no | 1 | FAILED |

Alive: a restart of the process would not help. Ready: changes arrive in the sink. Tables that are set aside do not
make a pipeline unready, as the others go on and no restart or rollout would bring them back.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum


class Condition(Enum):
    """A condition of the module's table. The value is the word that is shown."""

    NEVER_STARTED = "never started"
    STARTING = "starting"
    SNAPSHOT = "snapshot"
    STREAMING = "streaming"
    INCOMPLETE = "incomplete"
    SOURCE_AWAY = "source away"
    SINK_AWAY = "sink away"
    RESTARTING = "restarting"
    STUCK = "stuck"
    SILENT = "silent"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def is_alive(self) -> bool:
        """Whether a restart of the process would not help."""
        return self not in (Condition.SILENT, Condition.KILLED)

    @property
    def is_ready(self) -> bool:
        """Whether changes arrive in the sink."""
        return self in (Condition.SNAPSHOT, Condition.STREAMING, Condition.INCOMPLETE)

    @property
    def is_lost(self) -> bool:
        """Whether somebody has to do something: the exit code of `tailrace status` is 1 then."""
        return self in _LOST

    @property
    def connect_state(self) -> str:
        """The state of a connector in Kafka Connect's REST."""
        return _CONNECT.get(self, "RUNNING")


_LOST = {Condition.INCOMPLETE, Condition.STUCK, Condition.SILENT, Condition.FAILED, Condition.KILLED}
_CONNECT = {
    Condition.NEVER_STARTED: "UNASSIGNED",
    Condition.RESTARTING: "RESTARTING",
    Condition.PAUSED: "PAUSED",
    Condition.STOPPED: "STOPPED",
    Condition.STUCK: "FAILED",
    Condition.SILENT: "FAILED",
    Condition.FAILED: "FAILED",
    Condition.KILLED: "FAILED",
}


@dataclass(frozen=True)
class ConditionFacts:
    """What a condition depends on.

    `run` is a state of run_state.py. `is_source_away` and `is_sink_away`: it does not answer; `has_errors`:
    the server says that changes do not come, or that the pipeline cannot resume. `is_lacking`: tables are set aside or
    incomplete. `has_begun`: a micro-batch of this run is finished; None if that is not known. `phase` is the offset's.
    """

    run: str
    phase: str
    is_source_away: bool = False
    is_sink_away: bool = False
    _: KW_ONLY
    has_errors: bool = False
    is_lacking: bool = False
    is_silent: bool = False
    is_paused: bool = False
    restarts: bool = False
    has_begun: bool | None = None


def condition(facts: ConditionFacts) -> Condition:
    """The condition, by the first of these that holds."""
    if facts.is_paused:
        return Condition.PAUSED
    if facts.run in ("failed", "killed"):
        return Condition(facts.run)
    if facts.run != "running":
        # Nobody waits for what is away.
        is_stuck = facts.has_errors or facts.is_source_away or facts.is_sink_away
        if is_stuck:
            return Condition.STUCK
        return Condition.INCOMPLETE if facts.is_lacking else Condition(facts.run)
    held = (
        (facts.is_silent, Condition.SILENT),
        (facts.is_source_away, Condition.SOURCE_AWAY),
        (facts.has_errors, Condition.STUCK),
        (facts.restarts, Condition.RESTARTING),
        (facts.is_sink_away, Condition.SINK_AWAY),
        (facts.is_lacking, Condition.INCOMPLETE),
        (facts.has_begun is False or facts.phase == "not started", Condition.STARTING),
        (facts.phase != "stream", Condition.SNAPSHOT),
    )
    return next((state for is_so, state in held if is_so), Condition.STREAMING)
