"""Applies renames of tables within a micro-batch: the replicas of both names wait for each other, then rows move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tailrace.errors import SinkError
from tailrace.model.change import ChangeBatch
from tailrace.sinks.replica.marks import Extent
from tailrace.sinks.replica.reports import TableReport


@dataclass(frozen=True, order=True)
class Rename:
    """A table's new name, reported at that position of the log."""

    position: int | str
    old: str
    new: str

    @staticmethod
    def of(batch: ChangeBatch) -> Rename | None:
        """The rename that a batch reports, if any."""
        change = batch.schema_change
        if change is None or change.previous is None:
            return None
        return Rename(change.position, change.previous.unique, batch.table.id.unique)


@dataclass(frozen=True)
class Stop:
    """A replica that is written up to a rename; `extent` is the rename's among the parts of `table`, `at` its time."""

    table: str
    extent: Extent
    rename: Rename
    at: int | None = None

    @staticmethod
    def from_json(node: dict[str, Any]) -> Stop:
        """The inverse of `dataclasses.asdict`."""
        return Stop(node["table"], Extent.from_json(node["extent"]), Rename(**node["rename"]), node["at"])


def renamed(old: Stop, new: Stop, *, lacks_rows: bool = False) -> list[TableReport]:
    """What is to be known of a rename that is done; `lacks_rows`: the rows are under the former name alone."""
    why = f"it was {old.table} before, where its rows are"
    lacking = [TableReport(new.table, lacking=why)] if lacks_rows else []
    return [TableReport(new.table, renamed_from=old.table), *lacking, TableReport(old.table, is_gone=True)]


@dataclass(frozen=True)
class Done:
    """The renames that are done, and by table the number of the last one's part: what comes before it is written."""

    renames: frozenset[Rename] = frozenset()
    parts: Mapping[str, int] = field(default_factory=dict)

    def has(self, table: str, part: int) -> bool:
        """Whether a part of a table, or the rename that it is, was done in an earlier round."""
        return part <= self.parts.get(table, -1)


Report = TypeVar("Report")
Advance = Callable[[Done], tuple[list[Report], list[Stop]]]


def in_rounds(advance: Advance[Report], move: Callable[[Stop, Stop], list[Report]]) -> list[Report]:
    """Writes a micro-batch whose tables are renamed, and gives the reports of all rounds, in order.

    `advance` writes what is not written yet, but of each table nothing beyond a rename that is not among those done,
    and nothing before one that is; it tells where it stopped. `move` copies the rows from the first table to the
    second, once both are there. Repeated calls must change nothing.
    """
    reports: list[Report] = []
    done = Done()
    while True:
        some, stops = advance(done)
        reports += some
        if not stops:
            return reports
        places = {(stop.rename, stop.table): stop for stop in stops}
        ready = {
            stop.rename
            for stop in stops
            if {(stop.rename, stop.rename.old), (stop.rename, stop.rename.new)} <= {*places}
        }
        if not ready:
            raise SinkError(
                "a rename of this table reached only one of its two names",
                where=stops[0].table,
                remedy="read the table again: tailrace signal PIPELINE execute-snapshot --type blocking -t TABLE",
            )
        for rename in sorted(ready):
            reports += move(places[rename, rename.old], places[rename, rename.new])
        parts = {table: stop.extent.number for (rename, table), stop in places.items() if rename in ready}
        done = Done(done.renames | ready, {**done.parts, **parts})
