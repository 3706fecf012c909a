"""The folder as the registry loads it: its properties, its connector, its administration, new pipelines for it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from tailrace.config import Config, shared
from tailrace.config import resolve as resolution
from tailrace.config.resolve import Check
from tailrace.connectors.ports import ConnectorPackage, NewSource
from tailrace.connectors.whole_tables.connector import WholeTablesAdmin
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, TableNaming
from tailrace_folder.connector import FolderConnector
from tailrace_folder.options import OPTIONS

NAMING = TableNaming(DATABASE_SCHEMA_TABLE, default_schema="main")


class FolderAdmin(WholeTablesAdmin):
    """Implements Admin."""

    connector = FolderConnector


class FolderPackage(ConnectorPackage):
    """Implements ConnectorPackage."""

    def resolve(self, properties: object, checks: Sequence[Check] = ()) -> Config:
        return resolution.resolve(properties, OPTIONS, [shared.check_together, *checks], NAMING)  # type: ignore[arg-type]

    def connector(self, config: Config) -> FolderConnector:
        return FolderConnector(config)

    def admin(self, config: Config) -> FolderAdmin:
        return FolderAdmin(config)

    def new_source(self, url: str) -> NewSource:
        parts = urlsplit(url)
        user = parse_qs(parts.query).get("user", ["tailrace"])[0]
        password = "folder.password"
        properties = {"folder.path": parts.path, "folder.user": user, "topic.prefix": "folder"}
        properties[password] = "${env:FOLDER_PASSWORD}"
        variables, prompts = {password: "FOLDER_PASSWORD"}, {password: "Password"}
        return NewSource("folder", parts.path, properties, {}, variables, prompts)
