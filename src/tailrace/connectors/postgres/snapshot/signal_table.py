"""The signal table: reads new rows, and writes the rows that open and close a window."""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.connectors.postgres.server.connect import first_line
from tailrace.connectors.signal import CLOSE, DATA_BYTES, OPEN, SOURCE, Mark, Signal, unhandled
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

# The offset has a mark of each row, so that none is carried out twice.
MOST_ROWS, _LONGEST_ID = 1000, 128

_ROWS = """
SELECT s.id::text, s.type::text, left(s.data::text, {}), s.xmin::text FROM {} AS s(id, type, data)
WHERE s.type <> ALL ({}) ORDER BY age(s.xmin) DESC, s.ctid LIMIT {}
"""

Window = tuple[str, str]


class SignalTable:
    """The table that `signal.data.collection` names; without one there are no signals and no windows."""

    def __init__(self, config: Config) -> None:
        self.config = config
        table = table_of_signals(config)
        self.name = None if table is None else sql.Identifier(table.schema, table.table)
        self._is_read = SOURCE in config.names("signal.enabled.channels")
        self._logged: str | None = None

    def marks(self, connection: psycopg.Connection) -> tuple[Mark, ...]:
        """The marks of all rows, which a pipeline that begins does not carry out. Raises SourceError for too many."""
        found = self._rows(connection)
        if len(found) > MOST_ROWS:
            raise SourceError(self._too_many(connection), where="signal.data.collection", remedy=self._remedy)
        return tuple(mark for _, mark in found)

    def new(self, connection: psycopg.Connection, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        """The signals that are not handled yet, in the order they came, and the marks of all rows."""
        found = self._rows(connection)
        if len(found) > MOST_ROWS:
            self._log(f"{self._too_many(connection)}; no signal is read from it until then; remedy: {self._remedy}")
            return [], handled
        return unhandled(found, handled)

    def _rows(self, connection: psycopg.Connection) -> list[tuple[Signal, Mark]]:
        """The rows, those of windows aside, in the order they came as far as that is known; at most one too many."""
        if self.name is None or not self._is_read:
            return []
        limits = (sql.Literal(DATA_BYTES + 1), sql.Literal(MOST_ROWS + 1))
        query = sql.SQL(_ROWS).format(limits[0], self.name, sql.Literal([OPEN, CLOSE]), limits[1])
        try:
            rows = connection.execute(query).fetchall()
        except psycopg.ProgrammingError as error:
            needed = f"{self.name.as_string(connection)} needs columns id, type, data, in this order, and database.user"
            self._log(f"{first_line(error)}; {needed} the right to SELECT")
            return []
        if len(rows) <= MOST_ROWS:
            self._logged = None
        return [(Signal(id_, type_, data), (_short(id_), xid)) for id_, type_, data, xid in rows]

    def _too_many(self, connection: psycopg.Connection) -> str:
        assert self.name is not None
        return f"{self.name.as_string(connection)} holds more than {MOST_ROWS:,} signals"

    @property
    def _remedy(self) -> str:
        return "DELETE the rows of signals that were carried out; to do so regularly is safe"

    def _log(self, said: str) -> None:
        """Log a problem once, until it goes away or is another one."""
        if said != self._logged:
            log.error("signal.data.collection: %s", said)
        self._logged = said

    def open_window(self, connection: psycopg.Connection) -> Window | None:
        """Write the row that opens a window, if such rows are wanted; returns the window's id and time."""
        if self.name is None or self.config.flag("read.only"):
            return None
        window, now = str(uuid.uuid4()), _now()
        self._insert(connection, self.name, f"{window}-open", OPEN, f'{{"openWindowTimestamp": "{now}"}}')
        return window, now

    def close_window(self, connection: psycopg.Connection, opened: Window | None) -> None:
        """Write what closes a window: another row, or the removal of the first one."""
        if opened is None or self.name is None:
            return
        window, since = opened
        if self.config.text("incremental.snapshot.watermarking.strategy") == "insert_delete":
            row = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(self.name))
            first = sql.Identifier(row.description[0].name if row.description else "id")
            query = sql.SQL("DELETE FROM {} WHERE {} = %s").format(self.name, first)
            self._write(connection, query, [f"{window}-open"])
        else:
            times = f'{{"openWindowTimestamp": "{since}", "closeWindowTimestamp": "{_now()}"}}'
            self._insert(connection, self.name, f"{window}-close", CLOSE, times)

    def _insert(self, connection: psycopg.Connection, signals: sql.Identifier, *values: str) -> None:
        self._write(connection, sql.SQL("INSERT INTO {} VALUES (%s, %s, %s)").format(signals), values)

    def _write(self, connection: psycopg.Connection, query: sql.Composed, values: Sequence[str]) -> None:
        """Write to the table, again as often as signal.emit.failure.max.retries says."""
        left = self.config.number("signal.emit.failure.max.retries")
        while True:
            try:
                connection.execute(query, values)
                return
            except psycopg.Error as error:
                if not left or connection.closed:
                    raise
                log.warning("a window's row cannot be written, trying again: %s", first_line(error))
            left -= 1
            time.sleep(self.config.number("signal.emit.failure.backoff.ms") / 1000)


def _short(id_: str) -> str:
    """A signal's id as its mark has it."""
    return id_ if len(id_) <= _LONGEST_ID else f"sha256:{hashlib.sha256(id_.encode()).hexdigest()}"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
