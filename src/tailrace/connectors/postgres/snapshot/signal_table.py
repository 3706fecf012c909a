"""The signal table in PostgreSQL: its statements."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.connectors.postgres.server.connect import first_line
from tailrace.connectors.signal import CLOSE, DATA_BYTES, OPEN, Signal
from tailrace.connectors.signal_source import NotSignals, SignalTable, Stored
from tailrace.override import override

# Without a version PostgreSQL would have to compare contents; xmin is that of the transaction that wrote the row.
_ROWS = """
SELECT coalesce(s.id::text, ''), s.type::text, left(s.data::text, {}), s.xmin::text FROM {} AS s(id, type, data)
WHERE s.type <> ALL ({}) ORDER BY age(s.xmin) DESC, s.ctid LIMIT {}
"""


@dataclass(frozen=True)
class PostgresSignals(SignalTable):
    """Implements SignalTable. Connections are those of psycopg, committed statement by statement."""

    table: sql.Identifier

    @staticmethod
    def of(config: Config) -> dict[str, SignalTable]:
        """The table that `signal.data.collection` names, by its database."""
        table = table_of_signals(config)
        return {} if table is None else {table.database: PostgresSignals(sql.Identifier(table.schema, table.table))}

    @property
    @override
    def name(self) -> str:
        return self.table.as_string()

    @override
    def read(self, connection: psycopg.Connection, limit: int) -> list[Stored]:
        """The order is that in which rows came, as far as it is known."""
        limits = (sql.Literal(DATA_BYTES + 1), sql.Literal(limit))
        query = sql.SQL(_ROWS).format(limits[0], self.table, sql.Literal([OPEN, CLOSE]), limits[1])
        try:
            rows = connection.execute(query).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            raise
        except psycopg.ProgrammingError as error:
            raise NotSignals(
                f"{first_line(error)}; {self.name} needs columns id, type, data, in this order",
                where="signal.data.collection",
                remedy="create the table as docs/signals.md says, or correct the property",
            ) from error
        return [(Signal(id_, type_, data), xid) for id_, type_, data, xid in rows]

    @override
    def insert(self, connection: psycopg.Connection, id_: str, kind: str, data: str) -> None:
        connection.execute(sql.SQL("INSERT INTO {} VALUES (%s, %s, %s)").format(self.table), [id_, kind, data])

    @override
    def delete(self, connection: psycopg.Connection, id_: str) -> None:
        row = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(self.table))
        first = sql.Identifier(row.description[0].name if row.description else "id")
        connection.execute(sql.SQL("DELETE FROM {} WHERE {} = %s").format(self.table, first), [id_])
