"""PostgreSQL's entry in the registry: properties, connector, administration, new pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tailrace.config.kinds import expression
from tailrace.connectors.lazy_package import LazyPackage
from tailrace.connectors.ports import TableOverview
from tailrace.connectors.postgres.options import SLOT_DROP_ON_STOP
from tailrace.override import override


class PostgresPackage(LazyPackage):
    """Implements ConnectorPackage."""

    stop_property = SLOT_DROP_ON_STOP
    replica_properties: Mapping[str, str] = {
        "include.unknown.datatypes": "true",
        "rows.for.replica": "true",
        "value.loss.handling.mode": "text",
    }
    blocks = "position:source_block"
    connectors, admins = "connector:PostgresConnector", "admin.admin:PostgresAdmin"
    sources, benches = "admin.url:new_source", "verify:PostgresBench"

    @override
    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        listed = [expression(table.id.schema, table.id.table) for table in tables]
        via_root = any(table.is_partitioned for table in tables)
        return {self.include_list: listed, **({"publish.via.partition.root": "true"} if via_root else {})}
