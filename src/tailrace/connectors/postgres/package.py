"""PostgreSQL's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.kinds import expression
from tailrace.config.resolve import Check
from tailrace.connectors.ports import ConnectorPackage, NewSource, TableOverview
from tailrace.connectors.postgres import config as properties_of_connector
from tailrace.connectors.postgres.options import SLOT_DROP_ON_STOP
from tailrace.connectors.postgres.position import source_block
from tailrace.override import override

if TYPE_CHECKING:
    from tailrace.connectors.postgres.admin.admin import PostgresAdmin
    from tailrace.connectors.postgres.connector import PostgresConnector
    from tailrace.connectors.postgres.verify import PostgresBench
    from tailrace.model.source import SourceBlock


class PostgresPackage(ConnectorPackage):
    """Implements ConnectorPackage. What needs a driver is imported when it is called."""

    include_list = "table.include.list"
    exclude_list = "table.exclude.list"
    stop_property = SLOT_DROP_ON_STOP
    replica_properties: Mapping[str, str] = {
        "include.unknown.datatypes": "true",
        "rows.for.replica": "true",
        "value.loss.handling.mode": "text",
    }

    @override
    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        return properties_of_connector.resolve(properties, checks)

    @override
    def source_block(self, config: Config) -> SourceBlock:
        return source_block(config)

    @override
    def connector(self, config: Config) -> PostgresConnector:
        from tailrace.connectors.postgres.connector import PostgresConnector

        return PostgresConnector(config)

    @override
    def admin(self, config: Config) -> PostgresAdmin:
        from tailrace.connectors.postgres.admin.admin import PostgresAdmin

        return PostgresAdmin(config)

    @override
    def new_source(self, url: str) -> NewSource:
        from tailrace.connectors.postgres.admin.url import new_source

        return new_source(url)

    @override
    def bench(self, config: Config, schema: str) -> PostgresBench:
        from tailrace.connectors.postgres.verify import PostgresBench

        return PostgresBench(config, schema)

    @override
    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        listed = [expression(table.id.schema, table.id.table) for table in tables]
        via_root = any(table.is_partitioned for table in tables)
        return {self.include_list: listed, **({"publish.via.partition.root": "true"} if via_root else {})}
