"""The status of a pipeline: its run, its position, its lag, and what database and sink report about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tailrace.connectors.finding import SINK, Finding, answered
from tailrace.errors import SinkError, SourceAwayError, SourceError, TailraceError
from tailrace.operate.condition import Condition, ConditionFacts, condition
from tailrace.pipeline.activity import WRITES

if TYPE_CHECKING:
    from tailrace.config import Config
    from tailrace.connectors.ports import Admin, Detail, SourceState
    from tailrace.connectors.ports import Position as LogPosition
    from tailrace.pipeline.checkpoint import CheckpointState
    from tailrace.pipeline.complete import Completeness
    from tailrace.pipeline.definition import Definition
    from tailrace.pipeline.progress import RunProgress
    from tailrace.pipeline.run_state import RunState
    from tailrace.pipeline.table_states import Reaction
    from tailrace.pipeline.verified import Verified
    from tailrace.sinks.replica.aside import SetAside
    from tailrace.sinks.replica.states import TableState
    from tailrace.snapshot.incomplete import Incomplete
    from tailrace.snapshot.report import Report

# A run says how far it is twice a second. One that has said nothing for so long hangs.
SILENT_SECONDS = 60.0
# A server that does not answer for so long is away: a fault shows within 10 seconds.
ANSWER_SECONDS = 4.0
# The name of the finding that the server does not answer.
CONNECTION = "connection"


@dataclass(frozen=True)
class ReplicaTable:
    """A table of a replica: its state, since when (ISO 8601), why it is not complete, and what it takes to be so.

    `complete_until`: see Completeness. The others are None without continuous reconciliation: `verified_up_to` the time
    up to which the source's commits were compared and are in the table, `verified_on` when that was certain,
    `verified_percent` how much of it the present pass has compared, `verified_why` what keeps it from being verified,
    `not_compared` the columns that are not, or what of them is not, and `differs` what differed.
    """

    table: str
    state: str
    since: str
    why: str | None
    _: KW_ONLY
    takes: str | None
    is_lacking: bool
    complete_until: str | None = None
    verified_up_to: str | None = None
    verified_on: str | None = None
    verified_percent: int | None = None
    verified_why: str | None = None
    not_compared: Mapping[str, str] | None = None
    differs: str | None = None


@dataclass(frozen=True)
class Live:
    """What the process of a run knows of it: the newest progress (None: Spark starts), and how old that is."""

    progress: RunProgress | None = None
    silent_seconds: float = 0.0
    is_paused: bool = False

    @property
    def has_begun(self) -> bool:
        """Whether a micro-batch of this run is finished or being written."""
        return self.progress is not None and (self.progress.batch is not None or self.progress.activity == WRITES)


@dataclass(frozen=True)
class Status:
    """What the command shows. `lag_seconds`: how long ago the log ended at the position, 0 if it still does.

    `current` is where the server's log ends, None if the server cannot be queried: `problems` then says why.

    `lag_bytes` is None if the database has no such measure. `incomplete` are the tables whose snapshots were given up,
    `problems` what keeps changes from the pipeline now. `run` is whether the pipeline runs, and of what the last
    run ended; `set_aside` are the tables whose changes its replica cannot take. `details` and `fields` are what only
    this database has, for people and for `--json`. `live` is what the process of the run itself knows besides,
    `offset` what is stored of the position. `complete_until` is Completeness.until_us in ISO 8601.
    """

    name: str
    phase: str
    batch: int | None
    position: str | None
    _: KW_ONLY
    current: str | None
    lag_bytes: int | None
    lag_seconds: float | None
    tables: dict[str, int]
    snapshot: Report | None = None
    incomplete: tuple[Incomplete, ...] = ()
    problems: tuple[Finding, ...] = ()
    details: tuple[Detail, ...] = ()
    run: RunState | None = None
    set_aside: tuple[SetAside, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    replica: tuple[ReplicaTable, ...] = ()
    live: Live | None = None
    offset: Mapping[str, Any] | None = None
    complete_until: str | None = None

    @property
    def is_lacking(self) -> bool:
        """Whether tables of the replica are set aside, or may differ from the source."""
        return bool(self.set_aside) or any(each.is_lacking for each in self.replica)

    @property
    def condition(self) -> Condition:
        """The one condition that all of this comes to."""
        errors = [finding for finding in self.problems if finding.ok is False]
        is_sink_away = any(finding.name == SINK for finding in errors)
        others = [finding for finding in errors if finding.name != SINK]
        return condition(
            ConditionFacts(
                "stopped" if self.run is None else self.run.state,
                self.phase,
                is_source_away=self.current is None and any(finding.name == CONNECTION for finding in others),
                is_sink_away=is_sink_away,
                has_errors=bool(others),
                is_lacking=self.is_lacking,
                is_silent=self.live is not None and self.live.silent_seconds > SILENT_SECONDS,
                is_paused=self.live is not None and self.live.is_paused,
                restarts=self.passing[0] is not None,
                has_begun=None if self.live is None else self.live.has_begun,
            )
        )

    @property
    def passing(self) -> tuple[str | None, str | None]:
        """The error for which a query is to be started again, and what to do if it stays; None for none.

        Of a run of another process both are what its lease says.
        """
        if self.live is not None:
            progress = self.live.progress
            return (None, None) if progress is None else (progress.error, progress.remedy)
        owner = None if self.run is None or self.run.state != "running" else self.run.owner
        return (None, None) if owner is None else (owner.error, owner.remedy)

    @property
    def is_lost(self) -> bool:
        """Whether the pipeline does not run although nobody stopped it, cannot go on, or lacks a table."""
        return self.is_lacking or self.condition.is_lost

    def to_json(self) -> dict[str, Any]:
        """For `--json`: the database's own fields are on the same level as the others."""
        shown = asdict(self)
        del shown["details"], shown["live"], shown["offset"]
        return {**shown.pop("fields"), "condition": self.condition.value, **shown}


@dataclass(frozen=True)
class SourceLook:
    """What checkpoint and server say of a pipeline at one moment; `server` is None if it cannot be queried.

    `reached` is the committed offset's position in the log, `planned` that of the newest one, which may not be written
    yet; `reading` is a first snapshot that is not done.
    """

    position: CheckpointState
    reached: LogPosition | None
    planned: LogPosition | None
    server: SourceState | None
    reading: Report | None
    problems: tuple[Finding, ...]


def look(definition: Definition, *, compares: bool = True) -> Status:
    """The status of a pipeline, from its checkpoint and, if they can be queried, from the server and the sink.

    `compares`: see source_look.
    """
    from tailrace.pipeline.aside import set_aside
    from tailrace.pipeline.cataloguing import stored_problems
    from tailrace.pipeline.complete import clock_warnings, stored
    from tailrace.pipeline.restarts import restart_warnings
    from tailrace.pipeline.run_state import run_state
    from tailrace.pipeline.sink_health import problem as sink_problem

    source = source_look(definition, compares=compares, patience=ANSWER_SECONDS)
    run = run_state(definition.checkpoint)
    status = status_of(definition.name, definition.config(), source, run, time.time(), run.caught_up)
    complete, now = stored(definition.checkpoint), time.time()
    warned = (*restart_warnings(run.restarted, now), *clock_warnings(complete, now))
    problems = (*status.problems, *stored_problems(definition), *warned)
    tables = replica_tables(definition, complete)
    status = replace(status, replica=tables, problems=problems, complete_until=complete.text())
    if (away := sink_problem(definition)) is not None:
        return replace(status, problems=(*status.problems, away))
    try:
        status = replace(status, set_aside=set_aside(definition))
        status.tables.update(replica_rows(definition))
    except SinkError as error:  # it answers, and cannot be read
        status = replace(status, problems=(*status.problems, Finding(SINK, False, error.what, error.remedy)))
    return status


def source_look(
    definition: Definition,
    state: CheckpointState | None = None,
    problems: tuple[Finding, ...] | None = None,
    *,
    compares: bool = True,
    patience: float | None = None,
) -> SourceLook:
    """Looks at checkpoint (unless its `state` is given) and server; one that does not answer is a problem, no error.

    `problems` are given where the server is not to be asked for them. `compares`: whether the pipeline could resume is
    found out, too, for which log may have to be read. After `patience` seconds a server is away. Raises ConfigError,
    OffsetError, SparkAloneError.
    """
    from tailrace.pipeline.query_id import position_of
    from tailrace.pipeline.snapshot_watch import estimate
    from tailrace.snapshot.report import reads_tables

    config = definition.config()
    checkpoint = state or position_of(definition)
    admin = definition.package().admin(captured_by(config, checkpoint))
    committed, planned = (None if each is None else admin.position(each) for each in checkpoint.offsets)
    try:
        server = _answered(lambda: admin.state(checkpoint.pipeline), patience)
        reads = reads_tables(config, *checkpoint.offsets)
        reading = first(checkpoint, server, lambda: estimate(admin, config), time.time()) if reads else None
        if problems is None:
            problems = asked(admin, checkpoint, compares=compares)
        return SourceLook(checkpoint, committed, planned, server, reading, problems)
    except SourceError as error:
        failures = definition.package().connector(config).snapshots.failures
        is_away = isinstance(error, SourceAwayError) or failures.is_transient(error)
        return SourceLook(checkpoint, committed, planned, None, None, (unasked(error, is_away=is_away),))


def _answered(ask: Callable[[], SourceState], patience: float | None) -> SourceState:
    """The answer of a server. Raises SourceError, also where it does not answer: drivers wait for longer."""
    if patience is None:
        return ask()
    try:
        return answered(ask, patience)
    except TimeoutError:
        what, remedy = unanswered(patience)
        raise SourceAwayError(what, remedy=remedy) from None


def unanswered(seconds: float) -> tuple[str, str]:
    """What is said of a server that has not answered for so many seconds, and what to do."""
    remedy = "see whether the server hangs, and whether a firewall drops its packets"
    return f"the database has not answered for {seconds:,.0f} s", remedy


def status_of(
    name: str, config: Config, source: SourceLook, run: RunState, now: float, caught_up: float | None
) -> Status:
    """The status without what the sink says."""
    from tailrace.snapshot.chunk_size import fixed_size

    size = fixed_size(config)
    status = assess(name, source.position, source.server, source.reached, now, size, caught_up)
    return replace(status, snapshot=status.snapshot or source.reading, problems=source.problems, run=run)


def asked(admin: Admin, position: CheckpointState, *, compares: bool = True) -> tuple[Finding, ...]:
    """What keeps changes from the pipeline, according to the server. Raises SourceError."""
    problems = tuple(admin.problems(begun=position.committed is not None))
    resumable = admin.resumable(position.offsets) if compares and position.committed is not None else None
    return problems if resumable is None else (*problems, resumable)


def unasked(error: TailraceError, *, is_away: bool = True) -> Finding:
    """The problem of a server that cannot be queried; one that is not away refuses whoever asks."""
    what = error.what if error.where is None else f"{error.where}: {error.what}"
    return Finding(CONNECTION if is_away else "access", False, what, error.remedy)


def captured_by(config: Config, position: CheckpointState) -> Config:
    """The configuration with the tables that were added or removed while the pipeline ran."""
    from tailrace.snapshot.progress import Progress

    offset = position.committed.offset if position.committed else {}
    return replace(config, tables=Progress.from_json(offset.get("snapshots")).tables)


def assess(
    name: str,
    position: CheckpointState,
    server: SourceState | None,
    reached: LogPosition | None,
    now: float,
    chunk_size: int | None = None,
    caught_up: float | None = None,
) -> Status:
    """The status, from checkpoint and server; `server` is None if it cannot be queried.

    `reached` is the committed offset's position in the log; `now` and `caught_up` are times in seconds since
    1970. The latter is what the run says, by the planner's looks at the log; without it the age of the position counts.
    """
    from tailrace.snapshot.progress import Progress
    from tailrace.snapshot.report import report

    done = position.committed
    offset: dict[str, Any] = done.offset if done else {}
    end = None if server is None else server.log_end
    distance = None if reached is None or end is None else end.distance(reached)
    lag = None if distance is None else max(0, distance)
    planned = None if offset.get("ts_us") is None else offset["ts_us"] / 1e6
    since = planned if caught_up is None else caught_up
    age = None if since is None else max(0.0, now - since)
    return Status(
        name=name,
        phase=offset.get("phase", "not started" if position.planned is None else "first batch"),
        batch=done.number if done else None,
        position=None if reached is None else reached.to_text(),
        current=None if end is None else end.to_text(),
        lag_bytes=lag,
        lag_seconds=0.0 if reached is not None and end is not None and not reached < end else age,
        tables={},
        snapshot=report(offset, chunk_size, now),
        incomplete=Progress.from_json(offset.get("snapshots")).incomplete,
        details=() if server is None else server.details,
        fields={} if server is None else server.fields,
        offset=done.offset if done else None,
    )


def first(
    position: CheckpointState, server: SourceState, estimate: Callable[[], tuple[int, int]], now: float
) -> Report | None:
    """How far a first snapshot is that runs or was stopped in the middle; see `first_report`."""
    from tailrace.snapshot.report import first_report

    planned = position.planned.offset if position.planned else None
    done = position.committed.offset if position.committed else None
    return first_report(planned, done, estimate, server.reads_snapshot, now)


def replica_tables(definition: Definition, complete: Completeness) -> tuple[ReplicaTable, ...]:
    """The states of a replica's tables; none for other sinks, and for a checkpoint that Spark alone can read."""
    from tailrace.pipeline.checkpoint import SparkAloneError
    from tailrace.pipeline.replica_states import stored_states
    from tailrace.pipeline.table_states import Reaction
    from tailrace.pipeline.verified import stored as verified

    target = definition.sink.replica
    if target is None:
        return ()
    try:
        states = stored_states(definition.checkpoint)
    except SparkAloneError:
        return ()
    reaction = Reaction(target.on_incomplete)
    settings = definition.reconcile
    checked = verified(definition.checkpoint) if settings is not None and settings.continuous else {}
    return tuple(
        replace(_replica_table(name, state, reaction, checked.get(name)), complete_until=complete.text(name))
        for name, state in sorted(states.items())
    )


def _replica_table(name: str, state: TableState, reaction: Reaction, verified: Verified | None) -> ReplicaTable:
    from tailrace.pipeline.table_states import shown, takes
    from tailrace.pipeline.verified import iso
    from tailrace.sinks.replica.states import GONE, INCOMPLETE

    since = iso(state.since) or ""
    why, takes_ = "; ".join(state.why) or None, takes(state, reaction) if state.is_lacking else None
    table = ReplicaTable(shown(name), state.state, since, why, takes=takes_, is_lacking=state.is_lacking)
    if verified is None:
        return table
    table = replace(
        table,
        verified_up_to=iso(verified.up_to),
        verified_on=iso(verified.ended),
        verified_percent=verified.percent,
        verified_why=verified.why or None,
        not_compared=dict(verified.not_compared),
        differs=verified.differs or None,
    )
    if not verified.differs or state.is_lacking or state.state == GONE:
        return table
    said, since = f"it differs from its source: {verified.differs}", iso(verified.since) or since
    how = "run `tailrace reconcile FILE --repair`, or set reconcile.repair: true"
    return replace(table, state=INCOMPLETE, since=since, why=said, takes=how, is_lacking=True)


def replica_rows(definition: Definition) -> dict[str, int]:
    """Rows of each of a replica's tables; empty for other sinks and remote replicas."""
    from tailrace.sinks.replica.target import row_counts

    target = definition.sink.replica
    return row_counts(target.root, target.options) if target is not None and target.is_here else {}
