"""Implements Connector (connectors/log_ports.py) for SQL Server."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_NAMES
from tailrace.connectors.change_tables.connector import ChangeTableConnector
from tailrace.connectors.change_tables.entries import INSTANCES
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.ranges import LogEnd
from tailrace.connectors.offset import Reached
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.log.end import AgentCheck, end_of_transactions, log_end
from tailrace.connectors.sqlserver.narrower import REMEDY, RENEW, narrower, uncaptured
from tailrace.connectors.sqlserver.options import CAPTURE_INSTANCE_AUTO, MAX_ITERATION_TRANSACTIONS
from tailrace.connectors.sqlserver.record_format import source_block
from tailrace.connectors.sqlserver.renewal import Renewal
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.connectors.sqlserver.structures import in_effect, structures
from tailrace.model.source import SourceBlock
from tailrace.model.structure import Structure
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

log = logging.getLogger(__name__)


class SqlServerConnector(ChangeTableConnector):
    """Implements Connector."""

    dialect = DIALECT
    instance = "capture instance"
    skips_whole_changes = True
    longer = "EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 10080"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        # Each database has a first snapshot of its own.
        databases = len(config[DATABASE_NAMES])
        self.notices_without_rows, self.notices_at_restart = (
            self.notices_without_rows * databases,
            self.notices_at_restart * databases,
        )
        self._agent = AgentCheck(config)
        self._renewal = Renewal(config)
        self._told: set[str] = set()

    @property
    @override
    def source(self) -> SourceBlock:  # type: ignore[override]  # it depends on compat.version
        return source_block(self.config)

    @cached_property
    @override
    def identity(self) -> str:
        """The databases by name.

        The server's name and the time when a database was made differ from node to node of an availability group or a
        failover group. That it is the same log its commits say, see Dialect.commit.
        """
        names = self._server.ask(lambda connection: Catalog(connection, self.config).databases())
        return "/".join(quote(each, safe="") for each in sorted(names))

    @override
    def within(self, start: LsnPosition, end: LsnPosition, limit: int) -> LsnPosition:
        """As many transactions of each database as the configuration says."""
        most = self.config[MAX_ITERATION_TRANSACTIONS]
        if not most:
            return end

        def asked(connection: Connection) -> LsnPosition:
            return LsnPosition.of(
                {name: end_of_transactions(connection, name, start.lsn(name), lsn, most) for name, lsn in end.lsns}
            )

        return self._server.ask(asked)

    @override
    def look(self, connection: Connection, end: LsnPosition) -> None:
        for database, lsn in end.lsns:
            self._agent.look(connection, database, lsn)
        self._renewal.create(connection, [database for database, _ in end.lsns])

    @override
    def advanced(
        self, config: Config, reached: Reached, start: LsnPosition, to: LsnPosition, end: LogEnd | None
    ) -> Mapping[str, Any]:
        """What lies before `start` is in the sink."""
        if end is not None:
            instances = end.instances
            self._server.ask(lambda connection: self._renewal.drop(connection, start, instances))
        return super().advanced(config, reached, start, to, end)

    @override
    def warnings(self, connection: Connection, config: Config) -> Sequence[str]:
        catalog = Catalog(connection, config)
        return [each for database in catalog.databases() for each in self._warnings(connection, catalog, database)]

    def _warnings(self, connection: Connection, catalog: Catalog, database: str) -> Iterator[str]:
        captured = [each for each in catalog.instances(database) if catalog.filter.captures(each.table)]
        # It may be wanted so, so it is no problem that stays. capture.instance.auto tells itself what it cannot do.
        if not catalog.config[CAPTURE_INSTANCE_AUTO]:
            for sentence in uncaptured(connection, database, captured, catalog.filter).values():
                self._tell(sentence, RENEW)
        for sentence in narrower(connection, database, captured):
            self._tell(sentence, REMEDY)
            yield sentence

    def _tell(self, sentence: str, remedy: str) -> None:
        """Log a warning once."""
        if sentence not in self._told:
            self._told.add(sentence)
            log.warning("%s; remedy: %s", sentence, remedy)

    @override
    def described(self, connection: Connection, config: Config) -> Mapping[TableId, Structure]:
        return structures(connection, Catalog(connection, config), log_end(connection, config))

    @override
    def older(self, config: Config, reached: Reached, tables: Collection[TableId]) -> Collection[TableId]:
        """The rows of tables whose capture instances are new are compared with the log."""
        stored = reached.log.get(INSTANCES, {})
        met = {
            (database, schema, table) for database, names in stored.items() for _, schema, table, *_ in names.values()
        }
        return [table for table in tables if (table.database, table.schema, table.table) in met]

    @override
    def schema(self, config: Config, table: TableId) -> TableSchema | None:
        def query(connection: Connection) -> TableSchema | None:
            catalog = Catalog(connection, config)
            end = log_end(connection, config)
            instance = in_effect(catalog, table.database, end).get(table)
            captured = None if instance is None else catalog.capture(catalog.at(instance))
            if instance is None or captured is None:
                return None
            return self.dialect.filled(connection, config, instance, captured).schema

        return self._server.ask(query)
