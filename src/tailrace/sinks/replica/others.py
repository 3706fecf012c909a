"""Finds tables below a replica's root that its source may not have any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.layout import Names, table_folder
from tailrace.sinks.replica.marks import newest
from tailrace.sinks.replica.target import Target


def other_tables(
    root: str, storage_options: Mapping[str, str], names: Names, query: str, captured: Iterable[str]
) -> list[str]:
    """The tables that a query has written below a root, without those of these unique names. Raises SinkError."""
    lake, expected = lake_at(root, storage_options), {table_folder(name, names) for name in captured}

    def tables() -> list[str]:
        tables_of_query = []
        for name in sorted(lake.names() - expected):
            table = lake.open(name)
            record = None if table is None else newest(table, query)
            tables_of_query += [] if record is None else [record.table]
        return tables_of_query

    return retried(Target(root, "", storage_options), tables)
