"""Lists the collections of a deployment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.mongodb.client import Client
from tailrace.connectors.mongodb.config import is_for_replica
from tailrace.connectors.mongodb.options import CAPTURE_SCOPE, CAPTURE_TARGET, SYSTEM_DATABASES
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE

# The names that the server gives to collections which it fills before they get theirs, as PCRE reads them, too.
TEMPORARY = r"tmp\.agg_out\.[0-9a-f-]{36}|tmp[A-Za-z0-9]{5}\.(?:convertToCapped\..+|renameCollection)"


def table_id(database: str, collection: str) -> TableId:
    """The identity of a collection."""
    return TableId(database, "", collection, DATABASE_TABLE)


def is_temporary(table: TableId) -> bool:
    """Whether the server fills the collection before it gets its name: by `$out`, convertToCapped or a rename."""
    return re.fullmatch(TEMPORARY, table.table, re.DOTALL) is not None


@dataclass(frozen=True)
class KnownCollection:
    """The UUID of a collection, which keeps it when it is renamed, and whether it is capped."""

    uuid: bytes
    _: KW_ONLY
    is_capped: bool = False


class Collections:
    """The collections that a configuration captures."""

    def __init__(self, client: Client, config: Config) -> None:
        self._client, self._config = client, config
        self.filter = TableFilter.from_config(config)

    def captured(self) -> list[TableId]:
        """Those that are captured, in snapshot order: by their own names, as Debezium sorts them."""
        tables = [table for table in self.all() if self.captures(table)]
        return sorted(tables, key=lambda table: (table.table, table.database))

    def captures(self, table: TableId) -> bool:
        """Whether a collection is captured; those that are temporary have no replica."""
        return self.filter.captures(table) and not (is_for_replica(self._config) and is_temporary(table))

    def identities(self) -> dict[TableId, bytes]:
        """The UUIDs of the captured collections."""
        return {table: each.uuid for table, each in self.captured_collections().items()}

    def captured_collections(self) -> dict[TableId, KnownCollection]:
        """The captured collections, by one query a database."""
        collections = {}
        for name in self._databases():
            for each in self._client[name].list_collections(filter=self._wanted()):
                table = table_id(name, each["name"])
                if _is_own(table.table) and self.captures(table):
                    is_capped = bool(each.get("options", {}).get("capped"))
                    collections[table] = KnownCollection(bytes(each["info"]["uuid"]), is_capped=is_capped)
        return collections

    def read_first(self) -> list[TableId]:
        """Those that a first snapshot reads. A collection of signals is one of them if it is listed like any other."""
        listed = replace(self.filter, signals=frozenset())
        return [table for table in self.captured() if listed.snapshots(table)]

    def all(self) -> list[TableId]:
        """All of the watched databases, without views, time series and the server's own."""
        names = self._databases()
        return [table_id(name, each) for name in names for each in sorted(self._names(name)) if _is_own(each)]

    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        """Those of the tables that there are."""
        collections = set(self.all())
        return [table for table in tables if table in collections]

    def _databases(self) -> Iterable[str]:
        target, scope = self._config[CAPTURE_TARGET] or "", self._config[CAPTURE_SCOPE]
        if scope != "deployment":
            return [target.partition(".")[0]]
        return [name for name in sorted(self._client.list_database_names()) if name not in SYSTEM_DATABASES]

    def _names(self, database: str) -> list[str]:
        return list(self._client[database].list_collection_names(filter=self._wanted()))

    def _wanted(self) -> dict[str, Any]:
        wanted: dict[str, Any] = {"type": "collection"}
        if self._config[CAPTURE_SCOPE] == "collection":
            wanted["name"] = (self._config[CAPTURE_TARGET] or "").partition(".")[2]
        return wanted


def _is_own(name: str) -> bool:
    """Whether a collection is the user's own."""
    return not name.startswith("system.")
