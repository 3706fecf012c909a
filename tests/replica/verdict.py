"""Judges each table of a case: what its replica has, what the pipeline says of it, and what the case allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailrace.sinks.replica.folders import folder, shown
from tests.replica.case import Allowed, Case
from tests.replica.content import Comparison, SourceTable, replica_of
from tests.replica.states import GONE, SET_ASIDE, TableState

SAME, AGAIN, ASIDE, LEFT_INCOMPLETE = "SAME", "SAME after being read again", "ASIDE", "INCOMPLETE"
DIFFERS, NOT_SENT, TOLD, LEFT = "DIFFERS", "NOT SENT", "GONE", "LEFT"
_LONGEST = 300


@dataclass(frozen=True)
class Verdict:
    """What a table counts as, and why; `passes` is whether the case may end with it."""

    table: str
    word: str
    detail: str
    passes: bool

    def __str__(self) -> str:
        mark = "" if self.passes else " (not allowed)" if self.word in (ASIDE, LEFT_INCOMPLETE) else ""
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.table}: {self.word}{mark}{detail}"


def judge(
    case: Case,
    root: str,
    source: Sequence[SourceTable],
    replicas: Mapping[str, int],
    states: Mapping[str, TableState],
    marked: Mapping[str, str],
) -> list[Verdict]:
    """A verdict for each table of the source, and for each replica with rows that has no source.

    `replicas` are the rows of each folder below the root.
    """
    verdicts = [_of_table(case, root, table, states.get(table.name), table.name in marked) for table in source]
    known = {folder(table.id.unique) for table in source}
    for place, rows in sorted(replicas.items()):
        if place not in known and rows:
            verdicts.append(_of_rest(case.left, shown(place), rows, states.get(shown(place))))
    return verdicts


def _of_table(case: Case, root: str, table: SourceTable, state: TableState | None, was_marked: bool) -> Verdict:
    if state is not None and state.state != GONE:
        return _of_state(case, table.name, state)
    replica = replica_of(root, table.id)
    if not table.is_sent and (replica is None or not replica.num_rows or state is not None):
        return Verdict(table.name, NOT_SENT, "", True)
    found = table.compare(replica)
    if found.is_same:
        return Verdict(table.name, AGAIN if was_marked else SAME, _notes(found), True)
    return Verdict(table.name, DIFFERS, f"{found}{_notes(found)}", False)


def _of_state(case: Case, name: str, state: TableState) -> Verdict:
    is_aside = state.state == SET_ASIDE
    allowed = case.aside if is_aside else case.incomplete
    reason = " ".join(state.reason.split())[:_LONGEST]
    return Verdict(name, ASIDE if is_aside else LEFT_INCOMPLETE, reason, allowed.has(name, state.reason))


def _of_rest(left: Allowed, name: str, rows: int, state: TableState | None) -> Verdict:
    if state is not None:
        return Verdict(name, TOLD, " ".join(state.reason.split())[:_LONGEST], True)
    return Verdict(name, LEFT, f"{rows} rows of a table that the source does not have", left.has(name, ""))


def _notes(found: Comparison) -> str:
    return f" [{'; '.join(found.notes)}]" if found.notes else ""
