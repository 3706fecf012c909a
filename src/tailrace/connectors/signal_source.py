"""Reads the signals of a signal table and writes the rows that open and close the window of a chunk, on any database.

What is wrong with a table is a SourceError. What becomes of it is decided in one place, snapshot/table_signals.py.
"""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Protocol

from tailrace.config import Config
from tailrace.config.options.snapshot import (
    INCREMENTAL_SNAPSHOT_WATERMARKING_STRATEGY,
    READ_ONLY,
    SIGNAL_EMIT_FAILURE_BACKOFF_MS,
    SIGNAL_EMIT_FAILURE_MAX_RETRIES,
    SIGNAL_ENABLED_CHANNELS,
)
from tailrace.connectors.signal import CLOSE, OPEN, SOURCE, Mark, Signal, unhandled
from tailrace.connectors.snapshot_ports import Failures
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

# The offset has a mark of each row, so that none is carried out twice.
MOST_ROWS, _LONGEST_ID = 1000, 128
_WHERE = "signal.data.collection"

Stored = tuple[Signal, str | None]
"""A signal, and the version of its row, None where the database has none."""


class NotSignals(SourceError):
    """A table that is missing or has other columns: none of its rows is a signal."""


class SignalTable(Protocol):
    """One signal table of a database. Methods raise the driver's errors. The defaults suit chunks without windows."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    def read(self, connection: Any, limit: int) -> Sequence[Stored]:
        """At most so many of its rows, without those of windows, in the order they came. Raises NotSignals."""

    def insert(self, connection: Any, id_: str, kind: str, data: str) -> None:
        """Write a row."""
        return

    def delete(self, connection: Any, id_: str) -> None:
        """Remove a row."""
        return


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that is open: its table, its id and since when."""

    table: SignalTable
    id: str
    since: str


class SignalSource:
    """The tables that `signal.data.collection` names; without one there are no signals and no windows.

    `tables` has them by their databases.
    """

    def __init__(self, config: Config, failures: Failures, tables: Mapping[str, SignalTable]) -> None:
        self._config, self._failures, self._tables = config, failures, tables
        self._is_read = SOURCE in config[SIGNAL_ENABLED_CHANNELS]

    def new(self, connection: Any, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        """The signals that are not handled yet, in the order they came, and the marks of all.

        Raises SourceError if one of the tables cannot be read, and a lost connection's error.
        """
        tables = self._tables if self._is_read else {}
        stored_signals = [stored for table in tables.values() for stored in self._rows(connection, table)]
        return unhandled([(signal, _mark(signal, version)) for signal, version in stored_signals], handled)

    def _rows(self, connection: Any, table: SignalTable) -> Sequence[Stored]:
        try:
            rows = table.read(connection, MOST_ROWS + 1)
        except self._failures.driver_error as error:
            if self._failures.is_lost(error):
                raise
            remedy = f"give the pipeline's user the right to read {table.name}, and see that nobody keeps it locked"
            # Not a cause, as others would try again at once because of it, while the log waits.
            raise SourceError(
                f"{table.name} cannot be read: {self._failures.line(error)}", where=_WHERE, remedy=remedy
            ) from None
        if len(rows) > MOST_ROWS:
            what = f"{table.name} holds more than {MOST_ROWS:,} signals"
            remedy = "DELETE the rows of signals that were carried out; to do so regularly is safe"
            raise SourceError(what, where=_WHERE, remedy=remedy)
        return rows

    @contextmanager
    def window(self, connection: Any, database: str) -> Iterator[None]:
        """A window of a database's table around the block, if such rows are wanted."""
        opened = self.open_window(connection, database)
        try:
            yield
        finally:
            self.close_window(connection, opened)

    def open_window(self, connection: Any, database: str) -> OpenWindow | None:
        """Write the row that opens a window of a database's table, if such rows are wanted."""
        table = self._tables.get(database) or next(iter(self._tables.values()), None)
        if table is None or self._config[READ_ONLY]:
            return None
        window = OpenWindow(table, str(uuid.uuid4()), _now())
        times = f'{{"openWindowTimestamp": "{window.since}"}}'
        self._write(lambda: table.insert(connection, f"{window.id}-open", OPEN, times))
        return window

    def close_window(self, connection: Any, opened: OpenWindow | None) -> None:
        """Write what closes a window: another row, or the removal of the first one."""
        if opened is None:
            return
        table, id_ = opened.table, opened.id
        if self._config[INCREMENTAL_SNAPSHOT_WATERMARKING_STRATEGY] == "insert_delete":
            self._write(lambda: table.delete(connection, f"{id_}-open"))
        else:
            times = f'{{"openWindowTimestamp": "{opened.since}", "closeWindowTimestamp": "{_now()}"}}'
            self._write(lambda: table.insert(connection, f"{id_}-close", CLOSE, times))

    def _write(self, statement: Callable[[], None]) -> None:
        """Write to a table, again as often as signal.emit.failure.max.retries says."""
        left = self._config[SIGNAL_EMIT_FAILURE_MAX_RETRIES]
        while True:
            try:
                statement()
                return
            except self._failures.driver_error as error:
                if not left or self._failures.is_lost(error):
                    raise
                log.warning("a window's row cannot be written, trying again: %s", self._failures.line(error))
            left -= 1
            time.sleep(self._config[SIGNAL_EMIT_FAILURE_BACKOFF_MS] / 1000)


def _mark(signal: Signal, version: str | None) -> Mark:
    """A row's mark. Without a version it is what the row says that tells a signal from another of the same id."""
    id_, said = signal.id, f"{signal.type}\0{signal.data}"
    short = id_ if len(id_) <= _LONGEST_ID else f"sha256:{_digest(id_)}"
    return short, _digest(said)[:16] if version is None else version


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
