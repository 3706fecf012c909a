"""Implements the port Admin for servers with change tables: the part that these databases share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.filters import MESSAGE_KEY_COLUMNS
from tailrace.connectors.change_tables.connector import ChangeTableConnector
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.tables import Catalog
from tailrace.connectors.change_tables.takeover import entries_of, reading_of
from tailrace.connectors.debezium_offset import OffsetEntry
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Position, SourceNow
from tailrace.connectors.retry import at_once
from tailrace.connectors.shared_keys import Indexed, shared_keys
from tailrace.connectors.shared_log import SharedLogAdmin
from tailrace.connectors.sql_tables.source_now import SqlTablesNow
from tailrace.connectors.sql_tables.tables import Server
from tailrace.model.table import TableId
from tailrace.override import override


class ChangeTableAdmin(SharedLogAdmin):
    """Implements Admin. Each method makes a connection of its own."""

    connector: ClassVar[type[ChangeTableConnector]]
    has_databases = False
    """Whether Debezium's connector reads several databases, and stores an offset for each."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._dialect = self.connector.dialect

    @override
    def server_findings(self) -> list[Finding]:
        dialect = self._dialect
        with (
            dialect.failures.translated("the server cannot be queried"),
            closing(dialect.connect(self.config, "tailrace check", "")) as connection,
        ):
            return list(self.findings(connection))

    def findings(self, connection: Any) -> Iterator[Finding]:
        """What is checked over a connection. May raise the driver's errors."""
        raise NotImplementedError

    def shared_keys(self, catalog: Catalog, tables: Sequence[TableId]) -> list[Finding]:
        """Warnings of event keys that rows may share. Asks for the tables only where message.key.columns is set."""
        if not self.config[MESSAGE_KEY_COLUMNS]:
            return []
        numbers = catalog.tables()

        def indexed(table: TableId) -> Indexed:
            columns = catalog.described(table, numbers[table]).columns
            return Indexed(table, [column.name for column in columns], catalog.unique(table, numbers[table]))

        return shared_keys(self.config, map(indexed, tables))

    def databases(self) -> tuple[str, ...]:
        """The databases of the configuration, which positions are kept for."""
        return (self.config[DATABASE_DBNAME],)

    @override
    def taken_position(self) -> str | None:
        reading = reading_of(self.config, self.databases())
        return None if reading is None else reading.to_text()

    @override
    def as_debezium(self, position: Position) -> list[OffsetEntry]:
        return entries_of(self.config, LsnPosition.from_text(position.to_text()), has_databases=self.has_databases)

    @override
    def unreadable(self, tables: Sequence[TableId]) -> Finding:
        names = ", ".join(map(str, tables))
        return Finding("select", False, f"the user may not read {names}", "GRANT SELECT ON <table> TO <user>")

    @contextmanager
    @override
    def now(self) -> Iterator[SourceNow]:
        dialect = self._dialect
        with (
            dialect.failures.translated("the source cannot be read"),
            closing(dialect.connect(self.config, "tailrace reconcile", "")) as connection,
        ):
            yield SqlTablesNow(dialect, connection, self.config)

    @contextmanager
    def server(self) -> Iterator[Server]:
        """A server to query, closed after the block."""
        server = self._dialect.server(at_once(self.config), "tailrace admin")
        try:
            yield server
        finally:
            server.close()
