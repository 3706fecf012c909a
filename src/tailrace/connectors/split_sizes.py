"""Decides how much of a table a split of a snapshot reads, and how many splits a micro-batch has."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.options.databases import LEGACY_SNAPSHOT_MAX_THREADS, SNAPSHOT_TABLES_ORDER_BY_ROW_COUNT
from tailrace.config.options.snapshot import (
    SNAPSHOT_MAX_THREADS,
    SNAPSHOT_MAX_THREADS_MULTIPLIER,
    SNAPSHOT_MAX_THREADS_MULTIPLIER_TABLE,
)
from tailrace.config.options.spark import COMPAT_FAULTS

# A split reads about this much of a table; a task's start costs far less than reading it.
SPLIT_BYTES = 64 << 20
# What a first micro-batch reads at most, and thus what a restart has to read again at most.
BATCH_BYTES = 1 << 30


def at_once(config: Config) -> int | None:
    """Most splits of a micro-batch, None where snapshot.max.threads does not say."""
    return config[SNAPSHOT_MAX_THREADS] if config.is_given(SNAPSHOT_MAX_THREADS) else None


def pieces(config: Config, table: str, size: int) -> int:
    """How many ranges a table of so many bytes is cut into."""
    asked = config[SNAPSHOT_MAX_THREADS] * _multiplier(config, table)
    return asked if asked > 1 else max(1, -(-size // SPLIT_BYTES))


def is_chunked(config: Config) -> bool:
    """Whether the reference engine reads tables in chunks (RelationalSnapshotChangeEventSource)."""
    if config[LEGACY_SNAPSHOT_MAX_THREADS]:
        return False
    of_tables = config.members(SNAPSHOT_MAX_THREADS_MULTIPLIER_TABLE).values()
    return max(config[SNAPSHOT_MAX_THREADS], config[SNAPSHOT_MAX_THREADS_MULTIPLIER], *of_tables) > 1


def order_by_rows(config: Config) -> str:
    """The value of snapshot.tables.order.by.row.count.

    The reference engine accepts it for every database, but knows how many rows tables have only if it reads chunks.
    """
    is_ignored = Fault.UNORDERED_SNAPSHOTS in config[COMPAT_FAULTS] and not is_chunked(config)
    return "disabled" if is_ignored else config[SNAPSHOT_TABLES_ORDER_BY_ROW_COUNT]


def _multiplier(config: Config, table: str) -> int:
    """The table's own, or that of all."""
    name = SNAPSHOT_MAX_THREADS_MULTIPLIER_TABLE.named(table).name.lower()
    of_tables = config.members(SNAPSHOT_MAX_THREADS_MULTIPLIER_TABLE)
    return next(
        (of_tables[each] for each in of_tables if each.lower() == name), config[SNAPSHOT_MAX_THREADS_MULTIPLIER]
    )


def fits(config: Config, sizes: Sequence[tuple[str, int]]) -> bool:
    """Whether one micro-batch can read these tables, given by name and size in bytes."""
    most = at_once(config)
    is_within = most is None or sum(pieces(config, table, size) for table, size in sizes) <= most
    return is_within and sum(size for _, size in sizes) <= BATCH_BYTES
