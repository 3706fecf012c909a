"""The databases of one pipeline. Each has a snapshot of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.model.table import TableId


def by_database(tables: Iterable[TableId], databases: Sequence[str]) -> list[TableId]:
    """The tables in their order, but those of each database together."""
    places = {name: place for place, name in enumerate(databases)}
    return sorted(tables, key=lambda table: places[table.database])
