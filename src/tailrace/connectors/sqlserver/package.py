"""SQL Server's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.resolve import Check
from tailrace.connectors.ports import ConnectorPackage, NewSource, TableOverview
from tailrace.connectors.sqlserver import config as properties_of_connector
from tailrace.override import override

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

    @override
    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        return properties_of_connector.resolve(properties, checks)

    @override
    def source_block(self, config: Config) -> SourceBlock:
        from tailrace.connectors.sqlserver.record_format import source_block

        return source_block(config)

    @override
    def connector(self, config: Config) -> SqlServerConnector:
        from tailrace.connectors.sqlserver.connector import SqlServerConnector

        return SqlServerConnector(config)

    @override
    def admin(self, config: Config) -> SqlServerAdmin:
        from tailrace.connectors.sqlserver.admin import SqlServerAdmin

        return SqlServerAdmin(config)

    @override
    def new_source(self, url: str) -> NewSource:
        from tailrace.connectors.sqlserver.url import new_source

        return new_source(url)

    @override
    def bench(self, config: Config, schema: str) -> SqlServerProbes:
        from tailrace.connectors.sqlserver.verify import SqlServerProbes

        return SqlServerProbes(config, schema)

    @override
    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        return {self.include_list: [re.escape(table.id.filtered) for table in tables]}
