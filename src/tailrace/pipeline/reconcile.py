"""Compares a replica with its source, table by table, while the pipeline runs, and finds the rows that differ.

How wrong rows are distinguished from late changes: docs/decisions/0015-wrong-rows-by-row-versions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace import transforms
from tailrace.config import Config
from tailrace.errors import ConfigError, TailraceError
from tailrace.events.selection import select
from tailrace.model.change import CREATE, DELETE, READ, TRUNCATE, UPDATE, ChangeBatch
from tailrace.model.native import lost
from tailrace.model.table import TableId, TableSchema
from tailrace.pipeline.aside import set_aside
from tailrace.pipeline.definition import Definition, ReplicaTarget
from tailrace.pipeline.following import Follower
from tailrace.pipeline.gone import gone_tables, rows_of
from tailrace.pipeline.nearest import meant_tables
from tailrace.pipeline.replica_states import stored_states
from tailrace.pipeline.sides import ColumnsChanged, Doing, KeyQuery, Sides, TablePart
from tailrace.pipeline.table_states import shown
from tailrace.sinks.replica.compare import BUCKETS, BucketTotals, Flags, suspects
from tailrace.sinks.replica.fold import merge_key
from tailrace.sinks.replica.modes import CHANGES
from tailrace.sinks.replica.row_outcomes import DIFFERENT, MISSING, SURPLUS, RowOutcomes, SeenRows
from tailrace.sinks.replica.states import ASIDE, GONE, INCOMPLETE, TableState
from tailrace.sinks.replica.target import Target, stored_tables

# Rows of a table that are checked one by one. More than these need a snapshot.
MOST_KEYS = 100_000
ROUNDS = 10
_ATTEMPTS = 3
_SHOWN = 5
EQUALS = ("equal", "equal in part")
_ONLY_HERE = "only the replica has it"
_UNLOGGED = "the log does not have it, so changes of it do not arrive"
_UNMAPPED = "the replica does not have it, as its type has no mapping"
_OPERATIONS = {CREATE: "creates", UPDATE: "updates", DELETE: "deletes", READ: "reads", TRUNCATE: "truncates"}
_KINDS = {"missing": MISSING, "surplus": SURPLUS, "different": DIFFERENT}


@dataclass
class ReconcileReport:
    """What was found of a table. `outcome` is equal, equal in part, different, undecided, not compared, or no table of
    the source; and `reason` says why.

    `state` is that of the replica's table, and `why` its reasons where it is not complete. `not_compared` names columns
    that are not compared, or what of them is not, and `configured` those that the configuration alters or leaves out.
    Of the `ranges` (of the key's hash) those differ whose rows were checked one by one. `undecided` rows changed all
    the time, or the source cannot be queried for them; `unread` differed beyond MOST_KEYS; `repaired` are equal by now.
    """

    table: str
    outcome: str = "not compared"
    reason: str | None = None
    source_rows: int | None = None
    _: KW_ONLY
    target_rows: int | None = None
    ranges: int = 0
    ranges_different: int = 0
    missing: int = 0
    surplus: int = 0
    different: int = 0
    undecided: int = 0
    unread: int = 0
    repaired: int = 0
    keys: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    state: str | None = None
    why: list[str] = field(default_factory=list)
    not_compared: dict[str, str] = field(default_factory=dict)
    configured: dict[str, str] = field(default_factory=dict)

    @property
    def is_lacking(self) -> bool:
        """Whether the replica's table is known to differ, or to be set aside."""
        return self.state in (INCOMPLETE, ASIDE)

    @property
    def damaged(self) -> int:
        """How many rows are wrong in the target for certain."""
        return self.missing + self.surplus + self.different


@dataclass
class ComparedTable:
    """A report, and what a repair needs: the table's sides, the keys that were queried, which of them are wrong."""

    report: ReconcileReport
    sides: Sides | None = None
    asked: KeyQuery | None = None
    wrong: Flags | None = None


class Reconciler:
    """Compares the tables of one pipeline's replica. `timeout` is how long the pipeline is waited for, in seconds."""

    def __init__(self, definition: Definition, timeout: float, progress: Doing | None = None) -> None:
        target = definition.sink.target
        if not isinstance(target, ReplicaTarget):
            what = f"the sink {definition.sink.kind} holds events or nothing, and no table to compare with"
            raise ConfigError(what, where="sink", remedy="Reconcile a pipeline whose sink is a replica.")
        if target.mode == CHANGES:
            what = "with `mode: changes` a replica holds changes, and no rows to compare with those of the source"
            raise ConfigError(what, where="sink.replica.mode", remedy="Compare the table that you merge them into.")
        self.definition = definition
        self.follower = Follower(definition, timeout)
        self._target = target
        self._gone: dict[str, TableId] = {}
        self.progress: Doing = progress or Doing()

    def tables(self, names: Sequence[str]) -> list[TableId]:
        """The captured tables that a replica follows, or those that are named. Raises ConfigError, SourceError."""
        with self.follower.admin.now() as now:
            captured = {str(table): table for table in now.tables()}
            chosen = now.followed()
        gone = {} if names and {*names} <= {*captured} else self._find_gone(captured.values())
        captured, chosen = captured | gone, [*chosen, *gone.values()]
        for name in names:
            if name not in captured:
                remedy = meant_tables(name, captured) or "`tailrace status` lists the replica's tables."
                raise ConfigError("the pipeline does not capture this table", where=name, remedy=remedy)
        if not chosen:
            raise ConfigError(
                "no table matches", where="table.include.list", remedy="`tailrace check` lists the tables."
            )
        return [captured[name] for name in names] if names else chosen

    def _find_gone(self, captured: Iterable[TableId]) -> dict[str, TableId]:
        """The replica's tables that the source has no more, by their names."""
        self._gone = {str(table): table for table in gone_tables(self.definition, captured)}
        return self._gone

    def compare(self, table: TableId, part: Callable[[], TablePart] | None = None) -> ComparedTable:
        """Compare one table, or a part of it. What keeps it from being compared is in the report."""
        compared = self._begun(table)
        for _ in range(_ATTEMPTS):
            compared = self._begun(table)
            try:
                self._compare(table, compared, part=None if part is None else part())
            except ColumnsChanged as error:
                compared.report.reason = error.what
                continue
            except TailraceError as error:
                compared.report.reason = str(error)
            break
        return compared

    def glance(self, table: TableId) -> ComparedTable | None:
        """What can be said of a table by reading it once, without waiting; None if that takes a comparison."""
        compared = self._begun(table)
        try:
            self._compare(table, compared, only_equal=True)
        except TailraceError:
            return None
        return compared if compared.report.outcome in EQUALS else None

    def others(self, tables: Sequence[TableId]) -> Iterator[ReconcileReport]:
        """Replicas that no captured table has. Raises SinkError."""
        captured = {table.unique for table in tables}
        for name in stored_tables(self._target.root, self._target.options):
            if name not in captured:
                yield ReconcileReport(
                    shown(name),
                    "no table of the source",
                    "the source has no such table, or it is not captured; the replica's table can be removed",
                    state=self._states().get(name, TableState(GONE, 0)).state,
                )

    def _states(self) -> dict[str, TableState]:
        return stored_states(self.definition.checkpoint)

    def _begun(self, table: TableId) -> ComparedTable:
        report, state = ReconcileReport(str(table)), self._states().get(table.unique)
        if state is not None:
            report.state, report.why = state.state, [*state.why]
        return ComparedTable(report)

    def examine(self, compared: ComparedTable) -> None:
        """Decide the keys that were queried, and put the results into the report."""
        sides, asked, report = compared.sides, compared.asked, compared.report
        assert sides is not None
        assert asked is not None
        outcomes = self._row_outcomes(sides, asked, report)
        compared.wrong = asked.accepted & (outcomes.kinds >= MISSING)
        counts = {name: int((outcomes.kinds == kind).sum()) for name, kind in _KINDS.items()}
        report.missing, report.surplus, report.different = counts.values()
        report.undecided = int(outcomes.open.sum())
        chosen = {**{name: outcomes.kinds == kind for name, kind in _KINDS.items()}, "undecided": outcomes.open}
        report.keys = {name: _first(asked.suspects.where(which).keys) for name, which in chosen.items() if which.any()}
        report.outcome = outcome(report)

    def _compare(
        self, table: TableId, compared: ComparedTable, *, only_equal: bool = False, part: TablePart | None = None
    ) -> None:
        config, report = self.follower.config, compared.report
        if str(table) in self._gone:
            return self._as_gone(report, rows_of(self._target, table))
        report.reason = self._unready(table)
        if report.reason is not None:
            return None
        with self.follower.admin.now() as now:
            schema = now.table(table)
            excluded, unlogged = now.excluded(schema), dict.fromkeys(now.unlogged(schema), _UNLOGGED)
            left_out = dict.fromkeys(now.left_out(schema), _UNMAPPED)
            report.reason = _missing_operations(self.definition, config, schema) or now.obstacle(
                schema, merge_key(schema)
            )
        if report.reason is not None:
            return None
        layout = self._target.layout
        place = Target(self._target.root, table.unique, self._target.options, layout.names, layout.mode)
        compared.sides = sides = Sides(self.follower.admin, place, schema, self.progress, part)
        surplus = sides.surplus([*layout.metadata.values(), *layout.mode.columns.values()])
        report.not_compared = {**left_out, **_lost(schema), **dict.fromkeys(surplus, _ONLY_HERE), **unlogged}
        report.configured = {
            **dict.fromkeys(excluded, "left out of the replica by the configuration"),
            **{column.name: column.configured for column in schema.columns if column.configured is not None},
        }
        if sides.layout.missing:
            report.reason = f"the replica has no column {', '.join(sides.layout.missing)} yet"
        if sides.is_missing:
            report.reason = "there is no replica of this table"
        if only_equal:
            return self._glanced(report, sides)
        return self._by_key(compared, sides) if sides.layout.key else self._as_a_whole(report, sides)

    def _as_gone(self, report: ReconcileReport, rows: int) -> None:
        """A table that the source has no more: its replica is to be empty, unless rows are kept."""
        report.source_rows, report.target_rows = 0, rows
        is_kept = rows > 0 and self._target.on_drop == "keep"
        report.outcome = "not compared" if is_kept else "different" if rows else "equal"
        report.surplus = 0 if is_kept else rows
        report.reason = "the source has no such table any more, or it is not captured"
        if rows:
            report.reason += "; its rows are kept (on_drop: keep)" if is_kept else "; delete its folder"

    def _glanced(self, report: ReconcileReport, sides: Sides) -> None:
        """Equal at the first look, or not decided."""
        source, _ = sides.totals()
        if not self._count(report, source, sides.target_totals()).any():
            report.outcome = _equal(report)

    def _unready(self, table: TableId) -> str | None:
        """Why the table is not there to be compared at this time, None where it is."""
        if not self.follower.reaches(None):
            return self.follower.position_text()
        aside = [str(each) for each in set_aside(self.definition) if each.table == table.unique]
        if aside:
            return aside[0]
        reading = [request for request in self.follower.progress.queue if request.table == str(table)]
        if any(request.keys is None for request in reading):
            return f"a snapshot is to read it (signal {reading[0].signal}); compare it when that is done"
        return None

    def _by_key(self, compared: ComparedTable, sides: Sides) -> None:
        report = compared.report
        source, horizon = sides.totals()
        is_there = self.follower.reaches(horizon)
        target, totals = sides.target(), sides.target_totals()
        differing = self._count(report, source, totals)
        if not differing.any():
            report.outcome = _equal(report)
            return
        compared.asked = sides.ask(suspects(sides.layout, sides.source, target, totals, differing, MOST_KEYS))
        report.unread = compared.asked.suspects.unread
        if report.unread:
            report.reason = f"of the rows that differ {MOST_KEYS:,} were looked at; a blocking snapshot reads all again"
        if is_there:
            self.examine(compared)
        else:
            self._lags(report, len(compared.asked.suspects))

    def _row_outcomes(self, sides: Sides, asked: KeyQuery, report: ReconcileReport) -> RowOutcomes:
        outcomes = RowOutcomes(len(asked.suspects))
        before, horizon = sides.seen(asked, asked.accepted)
        for _ in range(ROUNDS):
            chosen = outcomes.open & asked.accepted
            if not chosen.any():
                break
            if not self.follower.reaches(horizon):
                report.reason = self.follower.position_text()
                break
            held = sides.held(asked.suspects)
            if not self.follower.settles():
                report.reason = self.follower.position_text()
                break
            after, horizon = sides.seen(asked, chosen)
            outcomes.update(before, held, after, chosen)
            before = after
        return outcomes

    def _as_a_whole(self, report: ReconcileReport, sides: Sides) -> None:
        """A table without a key: its rows by ranges of their hashes, each decided as a row of a key is."""
        outcomes = RowOutcomes(BUCKETS)
        source, horizon = sides.totals()
        for _ in range(ROUNDS):
            is_there = self.follower.reaches(horizon)
            target = sides.target_totals()
            if not self._count(report, source, target).any():
                report.outcome = _equal(report)
                return
            if not is_there or not self.follower.settles():
                self._lags(report, abs(source.rows - target.rows))
                return
            after, horizon = sides.totals()
            before, later = (SeenRows(each.hashes, each.hashes) for each in (source, after))
            outcomes.update(before, target.hashes, later, outcomes.open)
            if not outcomes.open.any():
                break
            source = after
        different, left = int((outcomes.kinds >= MISSING).sum()), int(outcomes.open.sum())
        report.outcome = "different" if different else "undecided" if left else _equal(report)
        report.ranges_different = different + left
        if different:
            report.reason = (
                f"it has no key: {different:,} of {BUCKETS:,} ranges of its rows are not those of the source"
            )
        elif left:
            report.reason = f"it has no key, and {left:,} of {BUCKETS:,} ranges of its rows change all the time"

    def _count(self, report: ReconcileReport, source: BucketTotals, target: BucketTotals) -> Flags:
        differing = source.differing(target)
        report.source_rows, report.target_rows = source.rows, target.rows
        report.ranges, report.ranges_different = BUCKETS, int(differing.sum())
        return differing

    def _lags(self, report: ReconcileReport, count: int) -> None:
        report.outcome, report.undecided, report.reason = "undecided", count, self.follower.position_text()


def outcome(report: ReconcileReport) -> str:
    """A compared table's outcome by what its report counts."""
    if report.damaged:
        return "different"
    return "undecided" if report.undecided or report.unread else _equal(report)


def _equal(report: ReconcileReport) -> str:
    """What a table without a difference is called."""
    return "equal in part" if report.not_compared else "equal"


def _lost(table: TableSchema) -> dict[str, str]:
    """What the replica's columns do not keep of the source's values."""
    told = ((column.name, lost(column)) for column in table.columns)
    return {name: f"compared without {what}" for name, what in told if what is not None}


def _missing_operations(definition: Definition, config: Config, table: TableSchema) -> str | None:
    """Which operations never reach the replica, None where all do: they are sent the way that changes take."""
    nothing = pa.nulls(len(_OPERATIONS), table.row_type)
    rows = pa.RecordBatch.from_pydict({"op": pa.array([*_OPERATIONS]), "before": nothing, "after": nothing})
    steps = transforms.parse(definition.steps_text())
    kept = transforms.apply([select(ChangeBatch(table, rows), config)], steps)
    ops = {op for batch in kept for op in batch.rows.column("op").to_pylist()}
    lost = [word for op, word in _OPERATIONS.items() if op not in ops]
    return f"its {', '.join(lost)} do not reach the replica (skipped.operations, or a filter step)" if lost else None


def _first(keys: pa.Table) -> list[dict[str, Any]]:
    """The keys that a report shows: the smallest, where they have an order."""
    if any(pa.types.is_nested(each.type) for each in keys.schema):
        return list(keys.slice(0, _SHOWN).to_pylist())
    places = [str(place) for place in range(keys.num_columns)]
    order = pc.sort_indices(keys.rename_columns(places), sort_keys=[(place, "ascending") for place in places])
    return list(keys.take(order.slice(0, _SHOWN)).to_pylist())
