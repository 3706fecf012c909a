"""Finds the query that wrote a replica last, by the commits of its tables."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.sinks.replica.failures import ERRORS, failed
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.marks import newest
from tailrace.sinks.replica.target import Target


def last_query(root: str, storage_options: Mapping[str, str]) -> str | None:
    """The id of the query that made the newest commit of a table below a root; None if none has a query's commit.

    Raises SinkError.
    """
    lake = lake_at(root, storage_options)
    queries: list[tuple[int, str]] = []
    try:
        for name in lake.names():
            table = lake.open(name)
            record = None if table is None else newest(table)
            if table is not None and record is not None:
                queries.append((next(table.commits()).at, record.query))
    except ERRORS as error:
        raise failed(Target(root, "", storage_options), error, where=root) from error
    return max(queries, default=(0, None))[1]
