"""The folder as the registry loads it: its properties, its connector, its administration, new pipelines for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from tailrace.config import Config, shared
from tailrace.config import resolve as resolution
from tailrace.config.resolve import Check
from tailrace.connectors.ports import ConnectorPackage, NewSource, TableOverview
from tailrace.model.source import SourceBlock
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, TableNaming
from tailrace_folder.admin import FolderAdmin
from tailrace_folder.connector import FolderConnector
from tailrace_folder.options import OPTIONS
from tailrace_folder.rows import SOURCE

NAMING = TableNaming(DATABASE_SCHEMA_TABLE, default_schema="main")


class FolderPackage(ConnectorPackage):
    """Implements ConnectorPackage."""

    include_list, exclude_list, stop_property = "table.include.list", "table.exclude.list", None
    replica_properties: dict[str, str] = {}  # noqa: RUF012  # a protocol's member

    def resolve(self, properties: object, checks: Sequence[Check] = ()) -> Config:
        return resolution.resolve(properties, OPTIONS, [shared.check_together, *checks], NAMING)  # type: ignore[arg-type]

    def source_block(self, config: Config) -> SourceBlock:
        return SOURCE

    def connector(self, config: Config) -> FolderConnector:
        return FolderConnector(config)

    def admin(self, config: Config) -> FolderAdmin:
        return FolderAdmin(config)

    def new_source(self, url: str) -> NewSource:
        parts = urlsplit(url)
        user = parse_qs(parts.query).get("user", ["tailrace"])[0]
        properties = {"folder.path": parts.path, "folder.user": user, "topic.prefix": "folder"}
        variables = {"folder.password": "FOLDER_PASSWORD"}
        properties["folder.password"] = "${env:FOLDER_PASSWORD}"
        return NewSource("folder", parts.path, properties, {}, variables, {"folder.password": "Password"})

    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str]:
        return {self.include_list: ",".join(re.escape(table.id.filtered) for table in tables)}
