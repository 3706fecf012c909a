"""Signal tables of relational databases: their statements."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.config import Config
from tailrace.config.filters import tables_of_signals
from tailrace.connectors.signal import CLOSE, DATA_BYTES, OPEN, Signal
from tailrace.connectors.signal_source import NotSignals, SignalTable, Stored
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.model.table import TableId
from tailrace.override import override


@dataclass
class SqlSignals(SignalTable):
    """Implements SignalTable."""

    dialect: SqlDialect
    config: Config
    table: TableId
    _columns: list[str] = field(default_factory=list)

    @staticmethod
    def of(dialect: SqlDialect, config: Config) -> dict[str, SignalTable]:
        """The tables that `signal.data.collection` names, by their databases."""
        return {table.database: SqlSignals(dialect, config, table) for table in tables_of_signals(config)}

    @property
    @override
    def name(self) -> str:
        return str(self.table)

    @override
    def read(self, connection: Connection, limit: int) -> list[Stored]:
        """The order is the server's."""
        dialect = self.dialect
        id_, kind, data = map(dialect.name, self._names(connection))
        statement = (
            f"SELECT {dialect.as_text(id_)}, {dialect.as_text(kind)}, {dialect.as_text(data, DATA_BYTES + 1)} "
            f"FROM {dialect.table(self.table)} WHERE {kind} NOT IN ({dialect.text(OPEN)}, {dialect.text(CLOSE)})"
        )
        try:
            rows = dialect.rows_soon(connection, dialect.limited(statement, limit))
        except dialect.failures.driver_error:
            # The table may have been altered since its columns were read.
            self._columns.clear()
            raise
        return [(Signal(id_ or "", kind, data), None) for id_, kind, data in rows]

    @override
    def insert(self, connection: Connection, id_: str, kind: str, data: str) -> None:
        given = ", ".join(map(self.dialect.text, (id_, kind, data)))
        connection.run(f"INSERT INTO {self.dialect.table(self.table)} VALUES ({given})")

    @override
    def delete(self, connection: Connection, id_: str) -> None:
        first = self.dialect.name(self._names(connection)[0])
        connection.run(f"DELETE FROM {self.dialect.table(self.table)} WHERE {first} = {self.dialect.text(id_)}")

    def _names(self, connection: Connection) -> list[str]:
        """The names of the columns, read once. Raises NotSignals."""
        if not self._columns:
            catalog = self.dialect.catalog(connection, self.config)
            number = catalog.tables().get(self.table)
            columns = () if number is None else catalog.described(self.table, number).columns
            if len(columns) != 3:
                is_missing = "it is missing, or may not be seen" if number is None else f"it has {len(columns)} columns"
                raise NotSignals(
                    f"{self.table} needs the columns id, type, data, in this order; {is_missing}",
                    where="signal.data.collection",
                    remedy="create the table as docs/signals.md says, or correct the property",
                )
            self._columns = [column.name for column in columns]
        return self._columns
