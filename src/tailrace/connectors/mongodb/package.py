"""MongoDB's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.resolve import Check
from tailrace.connectors.mongodb import config as properties_of_connector
from tailrace.connectors.mongodb.options import CAPTURE_FOR_REPLICA, MONGODB_CONNECTION_STRING
from tailrace.connectors.ports import ConnectorPackage, NewSource, TableOverview
from tailrace.override import override

if TYPE_CHECKING:
    import pyarrow as pa

    from tailrace.connectors.mongodb.admin import MongoAdmin
    from tailrace.connectors.mongodb.connector import MongoConnector
    from tailrace.connectors.mongodb.verify import MongoBench
    from tailrace.model.source import SourceBlock


class MongoPackage(ConnectorPackage):
    """Implements ConnectorPackage. What needs the driver is imported when it is called."""

    include_list = "collection.include.list"
    exclude_list = "collection.exclude.list"
    stop_property = None
    replica_properties: Mapping[str, str] = {CAPTURE_FOR_REPLICA.name: "true"}

    @override
    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        return properties_of_connector.resolve(properties, checks)

    @override
    def with_columns(self, properties: Mapping[str, str], row: pa.StructType) -> Mapping[str, str]:
        """See ConnectorPackage.with_columns: columns that a sample showed are declared for the tasks."""
        from tailrace.connectors.mongodb.declared import OPTION
        from tailrace.connectors.mongodb.documents import declared

        is_given = OPTION in {name.lower() for name in properties}
        return properties if is_given else {**properties, **declared(row)}

    @override
    def address(self, config: Config) -> str:
        """See ConnectorPackage.address: the first host of several."""
        from tailrace.connectors.mongodb.client import hosts_of

        return hosts_of(config[MONGODB_CONNECTION_STRING]).partition(",")[0]

    @override
    def source_block(self, config: Config) -> SourceBlock:
        from tailrace.connectors.mongodb.record_format import source_block

        return source_block(config)

    @override
    def connector(self, config: Config) -> MongoConnector:
        from tailrace.connectors.mongodb.connector import MongoConnector

        return MongoConnector(config)

    @override
    def admin(self, config: Config) -> MongoAdmin:
        from tailrace.connectors.mongodb.admin import MongoAdmin

        return MongoAdmin(config)

    @override
    def new_source(self, url: str) -> NewSource:
        from tailrace.connectors.mongodb.url import new_source

        return new_source(url)

    @override
    def bench(self, config: Config, schema: str) -> MongoBench:
        from tailrace.connectors.mongodb.verify import MongoBench

        return MongoBench(config, schema)

    @override
    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        return {self.include_list: [re.escape(table.id.filtered) for table in tables]}
