"""Db2's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.resolve import Check
from tailrace.connectors.db2 import config as properties_of_connector
from tailrace.connectors.ports import ConnectorPackage, NewSource, TableOverview

if TYPE_CHECKING:
    from tailrace.connectors.db2.admin import Db2Admin
    from tailrace.connectors.db2.connector import Db2Connector
    from tailrace.connectors.db2.verify import Db2Probes
    from tailrace.model.source import SourceBlock


class Db2Package(ConnectorPackage):
    """Implements ConnectorPackage. What needs the driver is imported when it is called."""

    include_list = "table.include.list"
    exclude_list = "table.exclude.list"
    stop_property = None
    replica_properties: Mapping[str, str] = {"value.loss.handling.mode": "text"}

    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        """See ConnectorPackage.resolve."""
        return properties_of_connector.resolve(properties, checks)

    def source_block(self, config: Config) -> SourceBlock:
        """See ConnectorPackage.source_block."""
        from tailrace.connectors.db2.record_format import source_block

        return source_block(config)

    def connector(self, config: Config) -> Db2Connector:
        """See ConnectorPackage.connector."""
        from tailrace.connectors.db2.connector import Db2Connector

        return Db2Connector(config)

    def admin(self, config: Config) -> Db2Admin:
        """See ConnectorPackage.admin."""
        from tailrace.connectors.db2.admin import Db2Admin

        return Db2Admin(config)

    def new_source(self, url: str) -> NewSource:
        """See ConnectorPackage.new_source."""
        from tailrace.connectors.db2.url import new_source

        return new_source(url)

    def bench(self, config: Config, schema: str) -> Db2Probes:
        """See ConnectorPackage.bench."""
        from tailrace.connectors.db2.verify import Db2Probes

        return Db2Probes(config, schema)

    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        """See ConnectorPackage.capturing."""
        return {self.include_list: [re.escape(table.id.filtered) for table in tables]}
