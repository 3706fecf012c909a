"""Compares the tables of a replica: first those that are equal, then the others side by side; says how far it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from tailrace.model.table import TableId
from tailrace.override import override
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.reconcile import ComparedTable, Reconciler, ReconcileReport
from tailrace.pipeline.repair import repair
from tailrace.pipeline.sides import Doing

# Tables that differ wait for the pipeline, so several do at a time.
_AT_ONCE = 4


@dataclass
class ComparisonProgress(Doing):
    """What is being done, for people who wait; all methods may be called by several threads."""

    total: int = 0
    done: int = 0
    _doing: dict[str, str] = field(default_factory=dict)
    _rows: dict[str, int] = field(default_factory=dict)
    _expected: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @override
    def begin(self, table: str, doing: str, expected: int) -> None:
        """Something is done to a table, which has about so many rows to read; 0: nobody knows."""
        with self._lock:
            self._doing[table], self._rows[table], self._expected[table] = doing, 0, expected

    @override
    def read(self, table: str, rows: int) -> None:
        """So many more rows are read."""
        with self._lock:
            self._rows[table] = self._rows.get(table, 0) + rows

    def end(self, table: str, *, is_done: bool) -> None:
        """Nothing more is done to a table, for now or for good."""
        with self._lock:
            self._doing.pop(table, None)
            self.done += is_done

    @override
    def __str__(self) -> str:
        with self._lock:
            shown = "; ".join(f"{table}: {doing}{self._share(table)}" for table, doing in self._doing.items())
            return f"{self.done} of {self.total} tables are compared" + (f"; {shown}" if shown else "")

    def _share(self, table: str) -> str:
        rows, expected = self._rows[table], self._expected[table]
        if not rows:
            return ""
        share = f" of about {expected:,}, {min(100, 100 * rows // expected)} %" if expected else ""
        return f", {rows:,} rows{share}"


def compare_all(
    definition: Definition, names: Sequence[str], timeout: float, progress: ComparisonProgress, *, repairs: bool = False
) -> Iterator[ReconcileReport]:
    """The reports of the named tables (none: of all, and of what the replica has besides), as they are known.

    Raises ConfigError, SourceError.
    """
    quick = Reconciler(definition, 0, progress)
    tables = quick.tables(names)
    progress.total = len(tables)
    left = []
    for table in tables:
        compared = quick.glance(table)
        is_done = compared is not None and not (repairs and compared.report.is_lacking)
        progress.end(str(table), is_done=is_done)
        if compared is not None and is_done:
            yield compared.report
        else:
            left.append(table)
    patient = Reconciler(definition, timeout, progress)

    def examined(table: TableId) -> ReconcileReport:
        compared = _compared(patient, table, repairs=repairs)
        progress.end(str(table), is_done=True)
        return compared.report

    with ThreadPoolExecutor(min(_AT_ONCE, len(left)) or 1) as pool:
        for done in as_completed([pool.submit(examined, table) for table in left]):
            yield done.result()
    if not names:
        yield from patient.others(tables)


def _compared(reconciler: Reconciler, table: TableId, *, repairs: bool) -> ComparedTable:
    compared = reconciler.compare(table)
    if repairs:
        reconciler.progress.begin(str(table), "being repaired", 0)
        compared = repair(reconciler, compared)
    return compared
