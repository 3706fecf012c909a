"""The databases of one pipeline. Each has a snapshot of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_NAMES
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.javalike.hashes import map_order, pair_hash
from tailrace.model.table import TableId


def in_order(config: Config, databases: Iterable[str]) -> list[str]:
    """The databases in the order in which they are read: by name.

    With compat.faults it is that of the reference engine's set of partitions, made as the configuration lists them.
    """
    found = sorted(databases)
    if len(found) < 2 or not config[COMPAT_FAULTS]:
        return found
    given = {name.casefold(): place for place, name in enumerate(config[DATABASE_NAMES])}
    found.sort(key=lambda name: given.get(name.casefold(), len(given)))
    server = config[TOPIC_PREFIX]
    return map_order(found, lambda name: pair_hash(server, name))


def by_database(tables: Iterable[TableId], databases: Sequence[str]) -> list[TableId]:
    """The tables in their order, but those of each database together."""
    places = {name: place for place, name in enumerate(databases)}
    return sorted(tables, key=lambda table: places[table.database])
