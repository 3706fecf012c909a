"""Keeps the catalogue of a running replica: registers tables, changes their columns, takes away those that are gone.

It works in a thread of its own, after the rows are written: a catalogue that is away is logged and waited for; it keeps
no row back. What it has to do is found out from the replica and the catalogue alone, so a restart does what is missing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tailrace.errors import PassingError, TableError, TailraceError
from tailrace.sinks.replica.catalogs.catalog import Catalog, put, take_away
from tailrace.sinks.replica.catalogs.entry import CatalogEntry, TableDescription, entry
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.layout import Names, table_folder
from tailrace.sinks.replica.target import Target

log = logging.getLogger(__name__)

# A table that is written all the time is looked at so often, and so is whether tables have come or gone; all tables,
# and their comments, at each start and then.
_PAUSE_SECONDS, _ALL_SECONDS = 5.0, 600.0
_LONGEST_WAIT_SECONDS, _STOP_SECONDS = 60.0, 30.0
# Tables that the catalog refuses are logged one by one, up to so many.
_SHOWN = 10


@dataclass(frozen=True)
class Shelf:
    """Where the tables of a replica lie, and where readers of the catalogue see them (`location`, usually the same)."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    names: Names = "catalog"
    location: str | None = None

    def name(self, table: str) -> str:
        """The name of a table in the catalogue, by its unique name."""
        return table_folder(table, self.names)

    def place(self, table: str) -> str:
        """The URL of a table for readers of the catalogue."""
        base = (self.location or self.root).rstrip("/")
        return f"{base if '://' in base else f'file://{base}'}/{self.name(table)}"

    def entry(self, table: str, source: TableDescription) -> CatalogEntry | None:
        """The entry of a table as it is now, None where there is no table yet. Raises SinkError."""
        target = Target(self.root, table, self.options, self.names)
        replica = retried(target, target.open)
        return None if replica is None else entry(self.name(table), table, self.place(table), replica.schema, source)

    def is_empty(self, table: str) -> bool:
        """Whether a table has no row, or is not there. Raises SinkError."""
        target = Target(self.root, table, self.options, self.names)
        replica = retried(target, target.open)
        return replica is None or replica.count() == 0


class Registrar:
    """Keeps a catalogue up to date in a thread.

    `describe` asks the source about its tables. `tables` are those of the replica by their unique names, with whether
    the source still has them. `note` gets what keeps tables from being registered, whenever that changes.
    """

    def __init__(
        self,
        catalog: Catalog,
        shelf: Shelf,
        describe: Callable[[], Mapping[str, TableDescription]],
        tables: Callable[[], Mapping[str, bool]],
        note: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._catalog, self._shelf, self._describe, self._tables, self._note = catalog, shelf, describe, tables, note
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._due: set[str] = set()
        self._is_present: Mapping[str, bool] = {}
        self._is_fresh = False
        self._descriptions: Mapping[str, TableDescription] = {}
        self._has: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._away: str | None = None
        self._noted: tuple[str, ...] | None = None
        self._next = 0.0
        self._thread: threading.Thread | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps tables from being registered, a line each, with the remedy."""
        away = () if self._away is None else (self._away,)
        refused = list(self._refused.values())
        more = len(refused) - _SHOWN
        rest = (f"{more} more tables are not in the catalog; remedy: see the log",) if more > 0 else ()
        return (*away, *refused[:_SHOWN], *rest)

    def start(self) -> None:
        """Begin to register what the replica has."""
        self._thread = threading.Thread(target=self._run, name="catalog", daemon=True)
        self._thread.start()

    def written(self, tables: Iterable[str]) -> None:
        """Look at tables that a micro-batch has written."""
        with self._lock:
            self._due.update(tables)

    def stop(self) -> None:
        """Register what was written last, unless the catalogue is away, and end."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
            if self._thread.is_alive():
                log.warning("the catalog has not taken all tables within %.0f s; the next start does", _STOP_SECONDS)
            self._thread = None

    def _run(self) -> None:
        pause = _PAUSE_SECONDS
        while True:
            is_last = self._ended.is_set()
            if is_last and self._away is not None:
                return
            self.bring()
            if is_last:
                return
            self._ended.wait(pause)
            pause = _PAUSE_SECONDS if self._away is None else min(2 * pause, _LONGEST_WAIT_SECONDS)

    def bring(self) -> None:
        """Bring the catalogue up to what the replica is now, and note what keeps it from that."""
        away = None
        try:
            self._bring()
        except PassingError as error:
            away = f"{error.line}; tables are registered once that is over, and replication goes on"
        except TailraceError as error:
            away = error.line
        except Exception as error:  # the thread must go on, and say what it does not know
            log.exception("the catalog is not brought up to date")
            away = f"the catalog is not brought up to date: {type(error).__name__}: {error}; remedy: see the log"
        self._away = away
        self._tell()

    def _bring(self) -> None:
        tables = self._tables()
        is_all = time.monotonic() >= self._next
        with self._lock:
            self._due.update(
                each for each, is_there in tables.items() if is_all or self._is_present.get(each) != is_there
            )
        self._is_present, self._is_fresh = tables, False
        if is_all:
            self._ask_source()
            self._has.clear()
            self._next = time.monotonic() + _ALL_SECONDS
        with self._lock:
            due, self._due = sorted(self._due), set()
        try:
            while due:
                self._try_table(due[0], is_there=tables.get(due[0], False))
                due.pop(0)
        finally:
            with self._lock:
                self._due.update(due)

    def _ask_source(self) -> None:
        """Ask the source about its tables, once for each time that the catalogue is brought up to date."""
        if not self._is_fresh:
            self._descriptions, self._is_fresh = self._describe(), True

    def _try_table(self, table: str, *, is_there: bool) -> None:
        """Bring a table, or note why the catalogue refuses it. Raises what concerns all tables."""
        try:
            self._bring_table(table, is_there=is_there)
            self._refused.pop(table, None)
        except PassingError:
            raise
        except TailraceError as error:
            if not isinstance(error, TableError):
                self._catalog.look()
            place = "" if error.where in (None, table) else f"{error.where}: "
            self._refuse(table, f"{self._shelf.name(table)} is not in the catalog: {place}{error.line}")

    def _refuse(self, table: str, why: str) -> None:
        if self._refused.get(table) != why and len(self._refused) >= _SHOWN:
            log.warning("%s", why)  # others are logged with the problems
        self._refused[table] = why

    def _bring_table(self, table: str, *, is_there: bool) -> None:
        if not is_there:
            if self._shelf.is_empty(table):
                take_away(self._catalog, self._shelf.name(table), table, self._shelf.place(table))
                self._has.pop(table, None)
            return
        described = self._entry(table)
        if described is None or self._has.get(table) == described.digest:
            return
        if table in self._has or table not in self._descriptions:
            # A new table, or other columns: comments and the key may be others too.
            self._ask_source()
            described = self._entry(table) or described
        put(self._catalog, described)
        self._has[table] = described.digest
        log.info("the catalog has %s as %s", table, described.name)

    def _entry(self, table: str) -> CatalogEntry | None:
        return self._shelf.entry(table, self._descriptions.get(table, TableDescription()))

    def _tell(self) -> None:
        problems = self.problems
        if problems == self._noted:
            return
        for problem in problems:
            if problem not in (self._noted or ()):
                log.warning("%s", problem)
        try:
            self._note(problems)
        except TailraceError as error:
            log.warning("what the catalog lacks is not written down: %s", error)
        self._noted = problems
