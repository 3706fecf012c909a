"""Compares a replica with its source all the time while the pipeline runs: a part of a table, a pause, the next part.

The comparison is that of `tailrace reconcile`, of a part of the rows. A table with a key of whole numbers is compared
in parts in the order of its key, which files and databases agree on; another table as a whole.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from tailrace.connectors.notifications import REPLICA, Notice
from tailrace.errors import TailraceError
from tailrace.model.table import TableId, TableSchema
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.reconcile import EQUALS, ComparedTable, Reconciler, ReconcileReport
from tailrace.pipeline.repair import repair
from tailrace.pipeline.sides import TablePart
from tailrace.pipeline.table_states import StateFile, shown
from tailrace.pipeline.verified import FILE, Verified, from_text, to_text
from tailrace.sinks.replica.fold import merge_key

log = logging.getLogger(__name__)

# Rows of a part; a guess.
PART_ROWS = 20_000
# For so long the pipeline is waited for, each time.
_TIMEOUT_SECONDS = 60.0
# Before the next look where nothing can be compared; and between two passes through a table, which a small one needs.
_IDLE_SECONDS, _PASS_SECONDS = 10.0, 60.0
# The part of its time that the thread works at most, whatever the rate is.
_SHARE = 0.2
# A part that is undecided so often is passed.
_ATTEMPTS = 3
_KINDS = ("missing", "surplus", "different")
DIFFERS, EQUAL_AGAIN = "DIFFERS", "EQUAL_AGAIN"


class Continuous:
    """Compares in a thread of its own, from `start` to `stop`. `notify` gets a notification of each difference."""

    def __init__(
        self, definition: Definition, file: StateFile, notify: Callable[[Notice], object] | None = None
    ) -> None:
        settings = definition.reconcile
        assert settings is not None
        self._definition, self._file, self._notify = definition, file, notify
        self._rate, self._repairs = settings.rate, settings.repair
        self._tables = _read(file)
        self._order: list[TableId] = []
        self._attempts: dict[str, int] = {}
        # Before when no pass through a table begins, in seconds of the steady clock.
        self._due: dict[str, float] = {}
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._told = ""
        # What was said of tables that differ: each pass comes upon it again.
        self._said: dict[str, set[str]] = {}

    @property
    def tables(self) -> Mapping[str, Verified]:
        """What is known, by the unique names of the tables."""
        return dict(self._tables)

    @property
    def lines(self) -> tuple[str, ...]:
        """The tables that differ, for people."""
        differing = {name: each for name, each in self._tables.items() if each.differs}
        return tuple(f"{shown(name)} differs from its source: {each.differs}" for name, each in differing.items())

    def start(self) -> None:
        """Begin to compare, if that has not begun."""
        if self._thread is None:
            name = f"reconcile {self._definition.name}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Compare no more. What is being compared is left: nothing waits for it."""
        self._is_over.set()

    def _run(self) -> None:
        pause = 0.0
        while not self._is_over.wait(pause):
            pause = self._stepped()

    def _stepped(self) -> float:
        try:
            pause = self.step()
            self._told = ""
            return pause
        except TailraceError as error:
            if error.what != self._told and not self._is_over.is_set():
                log.warning("the replica cannot be compared with its source, which is tried again: %s", error)
                self._told = error.what
            return _IDLE_SECONDS
        except Exception as error:  # whatever storage and drivers raise: the thread goes on, and says why it waits
            if repr(error) != self._told and not self._is_over.is_set():
                log.exception("the replica cannot be compared with its source, which is tried again")
                self._told = repr(error)
            return _IDLE_SECONDS

    def step(self) -> float:
        """Compare the next part; the pause after it in seconds. Raises TailraceError."""
        begun, at = time.monotonic(), time.time()
        reconciler = Reconciler(self._definition, _TIMEOUT_SECONDS)
        table = self._next(reconciler) if reconciler.follower.reaches(None) else None
        if table is None:
            return _IDLE_SECONDS
        key = self._ordered_key(reconciler, table)
        verified = self._tables.get(table.unique, Verified()).keyed(key)
        compared, part = self._compared(reconciler, table, verified)
        if self._is_over.is_set():
            return 0.0
        self._tables[table.unique] = self._after(table, verified, compared, part, at)
        self._file.write(to_text(self._tables))
        worked = time.monotonic() - begun - reconciler.follower.waited
        owed = (compared.report.source_rows or 0) / self._rate
        rest = worked / _SHARE - worked
        if part is not None:
            return max(rest, owed - worked)
        # Of a table that is read as a whole this may be hours, for which the others do not wait.
        self._due[table.unique] = time.monotonic() + max(_PASS_SECONDS, owed)
        return rest

    def _next(self, reconciler: Reconciler) -> TableId | None:
        """The table whose turn it is, of those that are followed; None if all were compared not long ago."""
        now = time.monotonic()
        if not self._order:
            with reconciler.follower.admin.now() as source:
                self._order = list(source.followed())
            names = {table.unique for table in self._order}
            self._tables = {name: each for name, each in self._tables.items() if name in names}
        while self._order:
            table = self._order.pop(0)
            if now >= self._due.get(table.unique, now):
                return table
        return None

    def _compared(
        self, reconciler: Reconciler, table: TableId, verified: Verified
    ) -> tuple[ComparedTable, TablePart | None]:
        parts: list[TablePart] = []

        def part() -> TablePart:
            parts.append(TablePart(verified.key, verified.after, PART_ROWS))
            return parts[-1]

        compared = reconciler.compare(table, part if verified.key else None)
        if self._repairs and compared.report.outcome == "different" and not compared.report.is_lacking:
            compared = repair(reconciler, compared)
        return compared, parts[-1] if parts else None

    def _ordered_key(self, reconciler: Reconciler, table: TableId) -> tuple[str, ...]:
        """The key by which a table is read in parts; empty for a table that is read as a whole."""
        with reconciler.follower.admin.now() as now:
            schema = now.table(table) if table in now.tables() else None
        return schema.key if schema is not None and schema.key and _is_ordered(schema) else ()

    def _after(
        self, table: TableId, verified: Verified, compared: ComparedTable, part: TablePart | None, begun: float
    ) -> Verified:
        """What is known of a table after a part of it, whose comparison began at `begun`."""
        report = compared.report
        if report.outcome == "not compared":
            self._due[table.unique] = time.monotonic() + _PASS_SECONDS
            return replace(verified, why=report.reason or "")
        if report.outcome == "undecided" and self._is_tried_again(table):
            self._order.insert(0, table)
            return replace(verified, why=_undecided(report))
        if report.repaired:
            log.warning("%s: %d wrong rows are repaired", table, report.repaired)
        is_first = verified.after is None
        verified = Verified.again(verified, verified.key) if is_first else verified
        is_faultless = verified.is_faultless and report.outcome in EQUALS
        rows = verified.rows + (report.source_rows or 0)
        expected = 0 if compared.sides is None else compared.sides.expected
        passing = replace(
            verified,
            begun=begun if is_first else verified.begun,
            rows=rows,
            total=max(rows, expected),
            is_faultless=is_faultless,
            why=_undecided(report)
            if report.outcome == "undecided"
            else verified.why
            if not verified.is_faultless
            else "",
            not_compared=dict(report.not_compared),
        )
        if report.damaged or report.outcome == "different":
            passing = self._differing(table, passing, report, part)
        if part is not None and not part.is_last:
            return replace(passing, after=part.until)
        return self._passed(table, replace(passing, after=None, total=rows))

    def _passed(self, table: TableId, verified: Verified) -> Verified:
        """The same after the last part of a table."""
        self._due[table.unique] = time.monotonic() + _PASS_SECONDS
        if not verified.is_faultless:
            return verified
        self._said.pop(table.unique, None)
        if verified.differs:
            log.warning("%s does not differ from its source any more", table)
            self._tell(EQUAL_AGAIN, table, verified.differs)
        return replace(verified, up_to=verified.begun, ended=time.time(), differs="", since=None)

    def _is_tried_again(self, table: TableId) -> bool:
        tries = self._attempts.get(table.unique, 0) + 1
        self._attempts[table.unique] = tries % _ATTEMPTS
        return tries < _ATTEMPTS

    def _differing(
        self, table: TableId, verified: Verified, report: ReconcileReport, part: TablePart | None
    ) -> Verified:
        counts = {name: getattr(report, name) for name in _KINDS if getattr(report, name)}
        first = {name: next(iter(report.keys.get(name, ())), {}) for name in counts}
        rows = [f"{count:,} {name}{_named(first[name])}" for name, count in counts.items()]
        said = "; ".join(rows or [report.reason or report.outcome]) + ("" if part is None else f", of {part}")
        if said not in self._said.setdefault(table.unique, set()):
            self._said[table.unique].add(said)
            log.error(
                "%s differs from its source: %s. Run `tailrace reconcile FILE -t %s --repair`%s",
                *(table, said, table, "" if self._repairs else ", or set reconcile.repair: true"),
            )
            self._tell(DIFFERS, table, said)
        return replace(verified, differs=said, since=verified.since or time.time())

    def _tell(self, type_: str, table: TableId, reason: str) -> None:
        if self._notify is not None:
            self._notify(Notice(REPLICA, type_, (("table", str(table)), ("reason", reason))))


def _undecided(report: ReconcileReport) -> str:
    return report.reason or "some rows change all the time"


def _named(key: Mapping[str, object]) -> str:
    return f" (first {', '.join(f'{name}={value}' for name, value in key.items())})" if key else ""


def _is_ordered(table: TableSchema) -> bool:
    """Whether files have the order of the key that the database has."""
    return merge_key(table) == table.key and all(pa.types.is_integer(table.column(name).arrow) for name in table.key)


def _read(file: StateFile) -> dict[str, Verified]:
    try:
        text = file.read()
        return {} if text is None else from_text(text)
    except (TailraceError, ValueError, KeyError, TypeError) as error:
        log.warning("%s in the checkpoint cannot be read, and all tables are verified again: %s", FILE, error)
        return {}
