"""SQL Server's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.resolve import Check
from tailrace.connectors.ports import ConnectorPackage, NewSource, TableOverview
from tailrace.connectors.sqlserver import config as properties_of_connector

if TYPE_CHECKING:
    from tailrace.connectors.sqlserver.admin import SqlServerAdmin
    from tailrace.connectors.sqlserver.connector import SqlServerConnector
    from tailrace.connectors.sqlserver.verify import SqlServerProbes
    from tailrace.model.source import SourceBlock


class SqlServerPackage(ConnectorPackage):
    """Implements ConnectorPackage. What needs the driver is imported when it is called."""

    include_list = "table.include.list"
    exclude_list = "table.exclude.list"
    stop_property = None
    replica_properties: Mapping[str, str] = {"computed.columns": "exclude", "value.loss.handling.mode": "text"}

    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        """See ConnectorPackage.resolve."""
        return properties_of_connector.resolve(properties, checks)

    def source_block(self, config: Config) -> SourceBlock:
        """See ConnectorPackage.source_block."""
        from tailrace.connectors.sqlserver.record_format import source_block

        return source_block(config)

    def connector(self, config: Config) -> SqlServerConnector:
        """See ConnectorPackage.connector."""
        from tailrace.connectors.sqlserver.connector import SqlServerConnector

        return SqlServerConnector(config)

    def admin(self, config: Config) -> SqlServerAdmin:
        """See ConnectorPackage.admin."""
        from tailrace.connectors.sqlserver.admin import SqlServerAdmin

        return SqlServerAdmin(config)

    def new_source(self, url: str) -> NewSource:
        """See ConnectorPackage.new_source."""
        from tailrace.connectors.sqlserver.url import new_source

        return new_source(url)

    def bench(self, config: Config, schema: str) -> SqlServerProbes:
        """See ConnectorPackage.bench."""
        from tailrace.connectors.sqlserver.verify import SqlServerProbes

        return SqlServerProbes(config, schema)

    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        """See ConnectorPackage.capturing."""
        return {self.include_list: [re.escape(table.id.filtered) for table in tables]}
