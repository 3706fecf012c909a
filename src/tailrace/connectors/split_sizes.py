"""Decides how much of a table a split of a snapshot reads, and how many splits a micro-batch has."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.config import Config

# A split reads about this much of a table; a task's start costs far less than reading it.
SPLIT_BYTES = 64 << 20
# What a first micro-batch reads at most, and thus what a restart has to read again at most.
BATCH_BYTES = 1 << 30
_MULTIPLIER = "snapshot.max.threads.multiplier"


def at_once(config: Config) -> int | None:
    """Most splits of a micro-batch, None where snapshot.max.threads does not say."""
    return config.number("snapshot.max.threads") if "snapshot.max.threads" in config.given else None


def pieces(config: Config, table: str, size: int) -> int:
    """How many ranges a table of so many bytes is cut into."""
    asked = config.number("snapshot.max.threads") * _multiplier(config, table)
    return asked if asked > 1 else max(1, -(-size // SPLIT_BYTES))


def is_chunked(config: Config) -> bool:
    """Whether the reference engine reads tables in chunks (RelationalSnapshotChangeEventSource)."""
    if config.flag("legacy.snapshot.max.threads"):
        return False
    factors = [config.number(name) for name in config.values if name.lower().startswith(_MULTIPLIER)]
    return max(config.number("snapshot.max.threads"), *factors) > 1


def order_by_rows(config: Config) -> str:
    """The value of snapshot.tables.order.by.row.count.

    The reference engine accepts it for every database, but knows how many rows tables have only if it reads chunks.
    """
    is_ignored = config.flag("compat.faults") and not is_chunked(config)
    return "disabled" if is_ignored else config.text("snapshot.tables.order.by.row.count")


def _multiplier(config: Config, table: str) -> int:
    """The table's own, or that of all."""
    name = f"{_MULTIPLIER}.{table}".lower()
    return config.number(next((given for given in config.values if given.lower() == name), _MULTIPLIER))


def fits(config: Config, sizes: Sequence[tuple[str, int]]) -> bool:
    """Whether one micro-batch can read these tables, given by name and size in bytes."""
    most = at_once(config)
    is_within = most is None or sum(pieces(config, table, size) for table, size in sizes) <= most
    return is_within and sum(size for _, size in sizes) <= BATCH_BYTES
