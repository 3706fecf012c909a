"""Lists the collections of a deployment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.mongodb.client import Client
from tailrace.connectors.mongodb.config import SYSTEM_DATABASES
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE


def table_id(database: str, collection: str) -> TableId:
    """The identity of a collection."""
    return TableId(database, "", collection, DATABASE_TABLE)


class Collections:
    """The collections that a configuration captures."""

    def __init__(self, client: Client, config: Config) -> None:
        self._client, self._config = client, config
        self.filter = TableFilter.from_config(config)

    def captured(self) -> list[TableId]:
        """Those that are captured, in snapshot order: by their own names, as Debezium sorts them."""
        found = [table for table in self.all() if self.filter.captures(table)]
        return sorted(found, key=lambda table: (table.table, table.database))

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
        there = set(self.all())
        return [table for table in tables if table in there]

    def _databases(self) -> Iterable[str]:
        target, scope = self._config.optional("capture.target") or "", self._config.text("capture.scope")
        if scope != "deployment":
            return [target.partition(".")[0]]
        return [name for name in sorted(self._client.list_database_names()) if name not in SYSTEM_DATABASES]

    def _names(self, database: str) -> list[str]:
        wanted: dict[str, Any] = {"type": "collection"}
        if self._config.text("capture.scope") == "collection":
            wanted["name"] = (self._config.optional("capture.target") or "").partition(".")[2]
        return list(self._client[database].list_collection_names(filter=wanted))


def _is_own(name: str) -> bool:
    """Whether a collection is the user's own."""
    return not name.startswith("system.")
