"""MongoDB's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.connectors.lazy_package import LazyPackage
from tailrace.connectors.mongodb.options import CAPTURE_FOR_REPLICA, MONGODB_CONNECTION_STRING
from tailrace.override import override

if TYPE_CHECKING:
    import pyarrow as pa


class MongoPackage(LazyPackage):
    """Implements ConnectorPackage."""

    include_list = "collection.include.list"
    exclude_list = "collection.exclude.list"
    replica_properties: Mapping[str, str] = {CAPTURE_FOR_REPLICA.name: "true"}
    connectors, admins = "connector:MongoConnector", "admin:MongoAdmin"
    sources, benches = "url:new_source", "verify:MongoBench"

    @override
    def with_columns(self, properties: Mapping[str, str], row: pa.StructType) -> Mapping[str, str]:
        """Columns that a sample showed are declared for the tasks."""
        from tailrace.connectors.mongodb.declared import OPTION
        from tailrace.connectors.mongodb.documents import declared

        is_given = OPTION in {name.lower() for name in properties}
        return properties if is_given else {**properties, **declared(row)}

    @override
    def address(self, config: Config) -> str:
        """The first host of several."""
        from tailrace.connectors.mongodb.client import hosts_of

        return hosts_of(config[MONGODB_CONNECTION_STRING]).partition(",")[0]
