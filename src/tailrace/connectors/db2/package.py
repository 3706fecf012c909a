"""Db2's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.connectors.lazy_package import LazyPackage


class Db2Package(LazyPackage):
    """Implements ConnectorPackage."""

    replica_properties: Mapping[str, str] = {"value.loss.handling.mode": "text"}
    connectors, admins = "connector:Db2Connector", "admin:Db2Admin"
    sources, benches = "url:new_source", "verify:Db2Probes"
