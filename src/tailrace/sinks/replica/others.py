"""Finds tables below a replica's root that its source may not have any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltalake import DeltaTable

from tailrace.sinks.replica import storage
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.layout import Names, table_folder
from tailrace.sinks.replica.marks import newest
from tailrace.sinks.replica.target import Target


def other_tables(
    root: str, storage_options: Mapping[str, str], names: Names, query: str, known: Iterable[str]
) -> list[str]:
    """The tables that a query has written below a root, without those of these unique names. Raises SinkError."""
    options, expected = dict(storage_options), {table_folder(name, names) for name in known}

    def tables() -> list[str]:
        found = []
        for folder in sorted(storage.folders(root, "", options) - expected):
            uri = f"{root.rstrip('/')}/{folder}"
            if DeltaTable.is_deltatable(uri, options):
                record = newest(DeltaTable(uri, storage_options=options), query)
                found += [] if record is None else [record.table]
        return found

    return retried(Target(root, "", storage_options), tables)
