"""Finds the query that wrote a replica last, by the commits of its tables."""

from __future__ import annotations

from collections.abc import Mapping

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tailrace.sinks.replica import storage
from tailrace.sinks.replica.failures import failed
from tailrace.sinks.replica.marks import newest
from tailrace.sinks.replica.target import Target


def last_query(root: str, storage_options: Mapping[str, str]) -> str | None:
    """The id of the query that made the newest commit of a table below a root; None if none has a query's commit.

    Raises SinkError.
    """
    options = dict(storage_options)
    found: list[tuple[int, str]] = []
    try:
        for name in storage.folders(root, "", options):
            place = f"{root.rstrip('/')}/{name}"
            if not DeltaTable.is_deltatable(place, options):
                continue
            table = DeltaTable(place, storage_options=options)
            record = newest(table)
            if record is not None:
                found.append((table.history(1)[0]["timestamp"], record.query))
    except (DeltaError, OSError) as error:
        raise failed(Target(root, "", options), error, where=root) from error
    return max(found, default=(0, None))[1]
