"""SQL Server's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.connectors.lazy_package import LazyPackage


class SqlServerPackage(LazyPackage):
    """Implements ConnectorPackage."""

    replica_properties: Mapping[str, str] = {"computed.columns": "exclude", "value.loss.handling.mode": "text"}
    connectors, admins = "connector:SqlServerConnector", "admin:SqlServerAdmin"
    sources, benches = "url:new_source", "verify:SqlServerProbes"
