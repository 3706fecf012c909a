"""Reports what a micro-batch did to the tables of a replica, and what it found out about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace


@dataclass(frozen=True)
class TableReport:
    """What was done to one table: rows put and deleted, net, and the table's version then (None: nothing was new).

    `aside` is the error that set the table aside, if one did; `letters` the version of its dead letters then. `lacking`
    says why its rows may differ from the source's. `snapshot` is one whose rows replace what the table held; `begun` is
    the signal whose rows came in chunks, `ended` the one whose rows are all written, `stopped` one whose rows cannot
    be, as some are lost. `table_id` tells the table from another one in its place. `is_cured`: reading the table again
    makes it right. `is_gone`: the source has no such table any more, at that place; `is_there`: it has it, whatever was
    written. `renamed_from`: the name under which its rows were. `lasting` says why the log does not bring all changes
    of the table, for as long as that is so (empty: it does, None: nobody knows). `left_out` says why rows are missing
    of what is read of the table.
    """

    table: str
    upserted: int = 0
    deleted: int = 0
    version: int | None = None
    _: KW_ONLY
    aside: str | None = None
    letters: int | None = None
    lacking: str | None = None
    snapshot: str | None = None
    begun: str | None = None
    ended: str | None = None
    stopped: str | None = None
    table_id: str | None = None
    is_cured: bool = False
    is_gone: bool = False
    is_there: bool = False
    lasting: str | None = None
    reminder: str | None = None
    left_out: str | None = None
    renamed_from: str | None = None


def summed(reports: Iterable[TableReport]) -> dict[str, TableReport]:
    """The reports of parts, which are in order, one a table."""
    total: dict[str, TableReport] = {}
    for report in reports:
        before = total.get(report.table, TableReport(report.table))
        if report.is_gone or report.renamed_from is not None:
            # What was the matter with its rows before does not matter any more.
            before = replace(before, lacking=None, renamed_from=None)
        if report.renamed_from is not None:
            report = _inherited(report, total.get(report.renamed_from))
        is_back = report.is_there or report.lacking is not None or report.renamed_from is not None
        total[report.table] = replace(
            before,
            upserted=before.upserted + report.upserted,
            deleted=before.deleted + report.deleted,
            version=_newer(before.version, report.version),
            aside=report.aside or before.aside,
            letters=_newer(before.letters, report.letters),
            lacking=_joined(before.lacking, report.lacking),
            snapshot=report.snapshot or before.snapshot,
            begun=report.begun or before.begun,
            ended=report.ended or before.ended,
            stopped=report.stopped or before.stopped,
            table_id=report.table_id or before.table_id,
            is_cured=report.is_cured or before.is_cured,
            is_gone=report.is_gone or (before.is_gone and not is_back),
            is_there=not report.is_gone and (report.is_there or before.is_there),
            lasting=before.lasting if report.lasting is None else report.lasting,
            reminder=report.reminder or before.reminder,
            left_out=_joined(before.left_out, report.left_out),
            renamed_from=report.renamed_from or before.renamed_from,
        )
    return total


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(dict.fromkeys(each for each in reasons if each)) or None


def _inherited(report: TableReport, old: TableReport | None) -> TableReport:
    """The report of a rename, with what was found out about the rows under the names that they had in the batch."""
    if old is None:
        return report
    return replace(report, renamed_from=old.renamed_from or report.renamed_from, lacking=old.lacking)


def _newer(*versions: int | None) -> int | None:
    return max((version for version in versions if version is not None), default=None)
