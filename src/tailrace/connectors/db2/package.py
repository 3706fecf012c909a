"""Db2's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.resolve import Check
from tailrace.connectors.db2 import config as properties_of_connector
from tailrace.connectors.ports import ConnectorPackage, NewSource, TableOverview
from tailrace.override import override

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

    @override
    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        return properties_of_connector.resolve(properties, checks)

    @override
    def source_block(self, config: Config) -> SourceBlock:
        from tailrace.connectors.db2.record_format import source_block

        return source_block(config)

    @override
    def connector(self, config: Config) -> Db2Connector:
        from tailrace.connectors.db2.connector import Db2Connector

        return Db2Connector(config)

    @override
    def admin(self, config: Config) -> Db2Admin:
        from tailrace.connectors.db2.admin import Db2Admin

        return Db2Admin(config)

    @override
    def new_source(self, url: str) -> NewSource:
        from tailrace.connectors.db2.url import new_source

        return new_source(url)

    @override
    def bench(self, config: Config, schema: str) -> Db2Probes:
        from tailrace.connectors.db2.verify import Db2Probes

        return Db2Probes(config, schema)

    @override
    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        return {self.include_list: [re.escape(table.id.filtered) for table in tables]}
