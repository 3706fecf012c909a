"""Signal tables: reads new rows, and writes the rows that open and close a window."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timezone

from tailrace.config import Config
from tailrace.config.filters import tables_of_signals
from tailrace.connectors.change_tables.dialect import Connection, Dialect
from tailrace.connectors.signal import CLOSE, DATA_BYTES, OPEN, SOURCE, Mark, Signal, unhandled
from tailrace.errors import SourceError
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

# The offset has a mark of each row, so that none is carried out twice.
MOST_ROWS = 1000
Window = tuple[str, str]


class SignalTables:
    """The tables that `signal.data.collection` names; without one there are no signals and no windows."""

    def __init__(self, dialect: Dialect, config: Config) -> None:
        self._dialect, self._config = dialect, config
        self.tables = tables_of_signals(config)
        self._is_read = SOURCE in config.names("signal.enabled.channels")
        self._names: dict[TableId, list[str]] = {}

    def new(self, connection: Connection, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        """The signals that are not handled yet, in the order of their ids, and the marks of all. Raises SourceError."""
        tables = self.tables if self._is_read else ()
        signals = [signal for table in tables for signal in self._rows(connection, table)]
        return unhandled([(signal, (signal.id, None)) for signal in signals], handled)

    def _rows(self, connection: Connection, table: TableId) -> list[Signal]:
        names = self._columns(connection, table)
        if len(names) != 3:
            log.warning("signal.data.collection: %s needs the columns id, type, data, in this order", table)
            return []
        dialect = self._dialect
        id_, kind, data = map(dialect.name, names)
        statement = (
            f"SELECT {dialect.as_text(id_)}, {dialect.as_text(kind)}, {dialect.as_text(data, DATA_BYTES + 1)} "
            f"FROM {dialect.table(table)} WHERE {kind} NOT IN ({dialect.text(OPEN)}, {dialect.text(CLOSE)})"
        )
        found = connection.rows(dialect.limited(statement, MOST_ROWS + 1))
        if len(found) > MOST_ROWS:
            what = f"{table} holds more than {MOST_ROWS:,} signals"
            remedy = "DELETE the rows of signals that were carried out; to do so regularly is safe"
            raise SourceError(what, where="signal.data.collection", remedy=remedy)
        return [Signal(*row) for row in found]

    def _columns(self, connection: Connection, table: TableId) -> list[str]:
        if table not in self._names:
            catalog = self._dialect.catalog(connection, self._config)
            number = catalog.tables().get(table)
            columns = () if number is None else catalog.described(table, number).columns
            self._names[table] = [column.name for column in columns]
        return self._names[table]

    def of(self, database: str) -> TableId | None:
        """The table of signals that windows of a database's chunks are written to."""
        mine = [table for table in self.tables if table.database == database]
        return next(iter([*mine, *self.tables]), None)

    def open_window(self, connection: Connection, table: TableId | None) -> Window | None:
        """Write the row that opens a window, if such rows are wanted; returns the window's id and time."""
        if table is None or self._config.flag("read.only"):
            return None
        window, now = str(uuid.uuid4()), _now()
        self._insert(connection, table, f"{window}-open", OPEN, f'{{"openWindowTimestamp": "{now}"}}')
        return window, now

    def close_window(self, connection: Connection, table: TableId | None, opened: Window | None) -> None:
        """Write what closes a window: another row, or the removal of the first one."""
        if opened is None or table is None:
            return
        window, since = opened
        if self._config.text("incremental.snapshot.watermarking.strategy") == "insert_delete":
            first = self._dialect.name(self._columns(connection, table)[0])
            row = self._dialect.text(f"{window}-open")
            connection.run(f"DELETE FROM {self._dialect.table(table)} WHERE {first} = {row}")
        else:
            times = f'{{"openWindowTimestamp": "{since}", "closeWindowTimestamp": "{_now()}"}}'
            self._insert(connection, table, f"{window}-close", CLOSE, times)

    def _insert(self, connection: Connection, table: TableId, *values: str) -> None:
        given = ", ".join(map(self._dialect.text, values))
        connection.run(f"INSERT INTO {self._dialect.table(table)} VALUES ({given})")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
